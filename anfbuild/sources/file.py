"""Kind `file`: a file on this machine."""

from __future__ import annotations

import difflib
from pathlib import Path

from anfbuild.errors import StepError
from anfbuild.sources.verify import copy_verified


def copy_file(path: Path, sha256: str | None, folder: Path) -> Path:
    """Copy `path` into `folder`, verified against `sha256` where that is given.

    Raises StepError: missing (with near names beside it), a folder, unreadable, empty, another digest.
    """
    if path.is_dir():
        raise StepError(f"{path} is a folder, not a file", where="source.path", remedy="Name the file in it.")
    if not path.exists():
        near = _near(path)
        raise StepError(f"{path} does not exist", where="source.path", choices=near, remedy="Correct the path.")
    remedy = "Take the right file, or write its digest to source.sha256."
    try:
        with path.open("rb") as stream:
            return copy_verified(stream, sha256, folder / path.name, what=str(path), remedy=remedy)
    except OSError as error:
        raise StepError(f"{path} cannot be copied: {error.strerror or error}", where="source.path") from error


def _near(path: Path) -> list[str]:
    if not path.parent.is_dir():
        return []
    return difflib.get_close_matches(path.name, sorted(entry.name for entry in path.parent.iterdir()))
