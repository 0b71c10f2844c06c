"""The action key: all that decides what a step makes, and nothing else.

    manifest = {format, step, code, config, tools, inputs}        key = SHA-256 of its canonical JSON

No path, host, user, time or CPU is in it.
"""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anfbuild.engine.memo import Memo
from anfbuild.errors import RecipeError

FORMAT = 1
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


def key_values(config: Any, digest: Callable[[Path], str]) -> dict[str, Any]:
    """What of the slice `config` enters the key: `{config path: value}`; of outside files, the content only."""
    values = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.metadata["content"] and value is not None:
            _refuse_missing(value, field.metadata["path"])
            value = {"suffix": value.suffix, "sha256": digest(value)}
        values[field.metadata["path"]] = value
    return values


def _refuse_missing(path: Path, key: str) -> None:
    if path.exists():
        return
    beside = sorted(entry.name for entry in path.parent.iterdir()) if path.parent.is_dir() else []
    raise RecipeError(
        f"{path} does not exist",
        where=key,
        choices=difflib.get_close_matches(path.name, beside),
        remedy="Correct the path; a relative one starts at the folder in which anfbuild is called.",
    )


def content_digest(path: Path, memo: Memo) -> str:
    """SHA-256 of a file's bytes or, of a folder, of the names and bytes below it. Links are followed."""
    if not path.is_dir():
        digest: str = memo.get(path, _sha256)
        return digest
    listing = {
        file.relative_to(path).as_posix(): memo.get(file, _sha256) for file in sorted(path.rglob("*")) if file.is_file()
    }
    return hashlib.sha256(canonical(listing)).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
