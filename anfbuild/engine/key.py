"""The action key: all that decides what a step makes, and nothing else.

    manifest = {format, step, code, config, tools, inputs}        key = SHA-256 of its canonical JSON

No path, host, user, time or CPU is in it.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from anfbuild.engine.files import hash_regular
from anfbuild.engine.memo import Memo
from anfbuild.errors import RecipeError

PLUGIN = " (plug-in)"
"""Ends the name of what stands in the config part of a key for the code of a plug-in that a value names."""

FORMAT = 2
"""Raised when the meaning of a key or of what the store keeps changes."""


def canonical(value: Any) -> bytes:
    """The one JSON text of `value`: sorted keys, no spaces, NaN and Inf refused with ValueError."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def action_key(manifest: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of the manifest's canonical JSON."""
    return hashlib.sha256(canonical(manifest)).hexdigest()


def lookup(tree: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted `path` of a composed recipe. `*` collects over a mapping's keys: `a.*.b` -> {key: b}."""
    head, _, rest = path.partition(".")
    if head == "*":
        return {key: lookup(value, rest) if rest else value for key, value in sorted(tree.items())}
    value = tree[head]
    return lookup(value, rest) if rest else value


def read_slice(config: type[Any], tree: Mapping[str, Any], project: Path) -> Any:
    """An instance of the slice `config` filled from the composed recipe `tree`.

    Content fields become absolute paths, relative ones being relative to the folder `project`.
    """
    values = {}
    for field in dataclasses.fields(config):
        value = lookup(tree, field.metadata["path"])
        if field.metadata["content"] and value is not None:
            value = project / value
        values[field.name] = value
    return config(**values)


def key_values(
    config: Any, digest: Callable[[Path], str], plugin: Callable[[str, Any], Mapping[str, Any] | None]
) -> dict[str, Any]:
    """What of the slice `config` enters the key: `{config path: value}`; of outside files, the content only.

    `plugin(group, name)` is the identity of the plug-in that a value names, or None where it names none.
    """
    values = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.metadata["content"] and value is not None:
            try:
                value = {"suffix": value.suffix, "sha256": digest(value)}
            except RecipeError as error:
                error.where = field.metadata["path"]
                raise
        values[field.metadata["path"]] = value
        if field.metadata["plugin"] and value is not None and (identity := plugin(field.metadata["plugin"], value)):
            values[field.metadata["path"] + PLUGIN] = identity
    return values


def content_digest(path: Path, memo: Memo) -> str:
    """SHA-256 of a file's bytes or, marked as such, of the names below a folder and the bytes of its files.

    Links are followed.
    What is missing, leads round in a circle, or is neither file nor folder is a RecipeError.
    """
    if not path.is_dir():
        return _file_digest(path, memo)
    listing = {
        entry.relative_to(path).as_posix(): None if entry.is_dir() else _file_digest(entry, memo)
        for entry in _below(path)
    }
    return f"folder {hashlib.sha256(canonical(listing)).hexdigest()}"  # a file may hold the bytes of a listing


def content_stamps(config: Any) -> dict[str, list[int]]:
    """Of all files and folders that the slice `config` names outside the store: inode, size and times, by their path.

    A file that was changed and changed back has another time of change, which nobody can set.
    """
    stamps = {}
    for field in dataclasses.fields(config):
        root = getattr(config, field.name)
        if field.metadata["content"] and root is not None:
            for path in (root, *(_below(root) if root.is_dir() else ())):
                status = path.stat()
                stamps[str(path)] = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    return stamps


def _below(root: Path) -> Iterator[Path]:
    """All files and folders below `root`, in no order."""
    pending: list[tuple[Path, frozenset[str]]] = [(root, frozenset())]
    while pending:
        folder, above = pending.pop()
        real = os.path.realpath(folder)
        if real in above:
            raise RecipeError(
                f"{folder} leads back to a folder that it lies in", remedy="Remove the link in that path."
            )
        for entry in folder.iterdir():
            yield entry
            if entry.is_dir():
                pending.append((entry, above | {real}))


def _file_digest(path: Path, memo: Memo) -> str:
    if not path.is_file():
        raise _unreadable(path)
    digest: str = memo.get(path, hash_regular)
    return digest


def _unreadable(path: Path) -> RecipeError:
    if path.exists():  # a pipe or a device: reading it may never end
        return RecipeError(f"{path} is neither a file nor a folder", remedy="Name a regular file.")
    if path.is_symlink():
        return RecipeError(f"{path} is a link that leads nowhere", remedy="Correct or remove the link.")
    beside = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
    return RecipeError(
        f"{path} does not exist",
        choices=difflib.get_close_matches(path.name, beside),
        remedy="Correct the path; a relative one starts at the folder in which anfbuild is called.",
    )
