"""The files that a recipe is composed from, told apart by their bytes. Light: no Hydra."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

LOCK_SUFFIX = ".lock.yaml"
"""Of a file beside a recipe that is none itself: what a build of it was made of, and what came out."""


def shipped() -> Path:
    """The folder that holds our `conf/` and `recipes/`: inside an installed package, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    data = package / "_data"
    return data if data.is_dir() else package.parent


def beside(recipe: str, suffix: str, root: Path) -> Path:
    """The file with this suffix that belongs to the recipe of this name (`vision.det`), in a project or in ours."""
    return root / "recipes" / f"{recipe.replace('.', '/')}{suffix}"


def fingerprint(overrides: Sequence[str], project: Path) -> str | None:
    """SHA-256 over all that decides what `overrides` compose to: these, every recipe and group file, the code.

    None where that cannot be told: a link may lead to other folders.
    """
    hasher = hashlib.sha256(json.dumps([str(project), *overrides]).encode())
    try:
        hasher.update(_ours())
        for name in _FOLDERS:
            _add(hasher, project / name, ".yaml")
    except OSError:
        return None
    return hasher.hexdigest()


_FOLDERS = ("conf", "recipes")


@functools.cache
def _ours() -> bytes:
    """Of what composes, and of the files that come with it: nobody edits these in a process that has read them."""
    from importlib import metadata  # here: no verb but a build asks for versions

    hasher = hashlib.sha256()
    for distribution in ("hydra-core", "omegaconf"):
        hasher.update(f"\n{distribution} {metadata.version(distribution)}".encode())
    _add(hasher, Path(__file__).parent, ".py")
    for name in _FOLDERS:
        _add(hasher, shipped() / name, ".yaml")
    return hasher.digest()


def _add(hasher: hashlib._Hash, folder: Path, suffix: str) -> None:
    for path in _below(folder, suffix):
        data = path.read_bytes()
        hasher.update(f"\n{path.relative_to(folder).as_posix()} {len(data)}\n".encode() + data)
    hasher.update(b"\n/")


def _below(root: Path, suffix: str) -> Iterator[Path]:
    for folder, names, files in os.walk(root):
        names.sort()
        for name in names:
            if os.path.islink(f"{folder}/{name}"):  # noqa: PTH114  # no object for each of many
                raise OSError("a link to a folder is not followed")
        for file in sorted(files):
            # What is no file is no recipe either, and to open a FIFO would wait for ever.
            if file.endswith(suffix) and not file.endswith(LOCK_SUFFIX) and os.path.isfile(f"{folder}/{file}"):  # noqa: PTH113  # of many
                yield Path(folder, file)
