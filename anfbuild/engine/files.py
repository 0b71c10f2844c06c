"""Reading, hashing and copying the store's files. A pipe or a device may never end: only regular files are opened."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from pathlib import Path

CHUNK = 1 << 20
"""Bytes read at a time; a file of fewer is small."""


class NotRegular(ValueError):
    """There is something else than a file: a folder, a pipe, a device, a link to itself."""


def at_home(text: str) -> Path:
    """The path, with a `~` at its start resolved where that is known; as it is where it is not.

    A shell does that for what it is given, but not in quotes, nor in the file of a CI service.
    """
    return Path(os.path.expanduser(text))  # noqa: PTH111  # pathlib's raises for a user that is not there


def open_regular(path: Path) -> io.BufferedReader:
    """Open a regular file to read. Raises NotRegular, and OSError as `open` does."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        mode = 0
    if not stat.S_ISREG(mode):
        raise NotRegular(f"{path} is no regular file")
    return path.open("rb")


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file. Raises NotRegular, OSError."""
    with open_regular(path) as file:
        return file.read()


def hash_regular(path: Path) -> str:
    """SHA-256, in hex, of the bytes of a regular file. Raises NotRegular, OSError."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_verified(source: Path, destination: Path, sha: str, size: int) -> bool:
    """Copy a regular file. False, and no copy is left, where what was copied is not `size` bytes of SHA-256 `sha`.

    Raises NotRegular, and OSError where one of the two cannot be used.
    """
    hasher, copied = hashlib.sha256(), 0
    buffer = memoryview(bytearray(min(size + 1, CHUNK)))
    with open_regular(source) as file, destination.open("wb") as target:
        while count := file.readinto(buffer):
            hasher.update(buffer[:count])
            target.write(buffer[:count])
            copied += count
    if copied == size and hasher.hexdigest() == sha:
        return True
    destination.unlink()
    return False
