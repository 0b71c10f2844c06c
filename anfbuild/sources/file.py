"""Kind `file`: a file on this machine, or a folder with a model and the files that belong to it."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

from anfbuild.errors import StepError
from anfbuild.sources.verify import copy_verified, folder_digest

_PIN = "Take the right file, or write its digest to source.sha256."


def copy_file(path: Path, sha256: str | None, folder: Path) -> Path:
    """Copy `path` into `folder`, verified against `sha256` where that is given.

    Raises StepError: missing (with near names beside it), a folder, unreadable, empty, another digest.
    """
    if path.is_dir():
        raise StepError(f"{path} is a folder, not a file", where="source.path", remedy="Name the file in it.")
    if not path.exists():
        raise _missing(path, "source.path")
    try:
        with path.open("rb") as stream:
            return copy_verified(stream, sha256, folder / path.name, what=str(path), remedy=_PIN)
    except OSError as error:
        raise StepError(f"{path} cannot be copied: {error.strerror or error}", where="source.path") from error


def copy_folder(path: Path, file: str, sha256: str | None, folder: Path) -> Path:
    """Copy all that lies below the folder `path` into `folder`; returns where `file` of it is now.

    `file` is a path inside of `path`, "." for the folder itself. `sha256` pins all of it: see `folder_digest`.
    Raises StepError: no such folder or file, unreadable, another digest.
    """
    if not path.is_dir():
        raise StepError(
            f"{path} is not a folder, but source.file names a file in it",
            where="source.path",
            remedy="Name the folder that holds the model and its data, or set source.file to null.",
        )
    if not (path / file).exists():
        raise _missing(path / file, "source.file")
    try:
        shutil.copytree(path, folder, dirs_exist_ok=True)
        found = folder_digest(folder)
    except (OSError, shutil.Error) as error:
        raise StepError(f"{path} cannot be copied: {error}", where="source.path") from error
    if sha256 is not None and found != sha256.lower():
        shutil.rmtree(folder)
        raise StepError(
            f"{path} is not the pinned folder: its SHA-256 is {found}, expected {sha256.lower()}",
            where="source.sha256",
            remedy=_PIN,
        )
    return folder / file


def _missing(path: Path, where: str) -> StepError:
    near: list[str] = []
    if path.parent.is_dir():
        near = difflib.get_close_matches(path.name, sorted(entry.name for entry in path.parent.iterdir()))
    return StepError(f"{path} does not exist", where=where, choices=near, remedy="Correct the path.")
