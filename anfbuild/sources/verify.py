"""Bytes become a file only when they are whole and are the ones that the recipe pins."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import IO

from anfbuild.atomic import replacing
from anfbuild.errors import RecipeError, StepError

_CHUNK = 1 << 20


def check_digest(sha256: str, *, where: str) -> None:
    """RecipeError unless `sha256` is 64 hexadecimal digits."""
    if not re.fullmatch(r"[0-9a-fA-F]{64}", sha256):
        raise RecipeError(f"{sha256!r} is not a SHA-256: 64 hexadecimal digits", where=where)


def copy_verified(stream: IO[bytes], sha256: str | None, target: Path, *, what: str, remedy: str) -> Path:
    """Copy `stream` to `target`, which appears at once, whole, and only when its SHA-256 is `sha256` (None: any).

    Raises StepError naming `what` for an empty stream and for another digest.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as partial:
        with partial.open("wb") as file:
            found = digest_of(stream, file)
        if not partial.stat().st_size:
            raise StepError(f"{what} is empty", remedy=remedy)
        if sha256 is not None and found != sha256.lower():
            raise StepError(
                f"{what} is not the pinned file: its SHA-256 is {found}, expected {sha256.lower()}", remedy=remedy
            )
        partial.chmod(0o644)
    return target


def digest_of(stream: IO[bytes], copy: IO[bytes] | None = None) -> str:
    """SHA-256 of what is left in `stream`, which is written to `copy` on the way."""
    digest = hashlib.sha256()
    hash_into(stream, digest, copy)
    return digest.hexdigest()


def hash_into(stream: IO[bytes], digest: hashlib._Hash, copy: IO[bytes] | None = None) -> int:
    """Feed what is left in `stream` to `digest`, and to `copy`; how many bytes that is."""
    size = 0
    while chunk := stream.read(_CHUNK):
        digest.update(chunk)
        size += len(chunk)
        if copy is not None:
            copy.write(chunk)
    return size


def folder_digest(folder: Path) -> str:
    """SHA-256 of a folder: of one line `DIGEST  PATH` a file, sorted by path, as sha256sum prints it.

    `cd FOLDER && find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum` gives the same.
    """
    lines = hashlib.sha256()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files):
        with files[name].open("rb") as stream:
            lines.update(f"{digest_of(stream)}  {name}\n".encode())
    return lines.hexdigest()
