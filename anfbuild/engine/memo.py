"""What was once worked out about a file, remembered until the file changes.

A memo is a convenience: losing it, or reading a damaged one, costs time and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from anfbuild.atomic import replacing

# A file written twice within one tick of the clock of its file system, with the same size, looks unchanged.
# What is younger than this is therefore not remembered.
_SETTLED_NS = 2_000_000_000

_LENGTH = 5
"""Of an entry: size, two times, inode, value."""


class Memo:
    """A JSON file that maps a path, and what was asked of it, to a value derived from its bytes, under a checksum."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, list[Any]] = _load(path)
        self._dirty = False

    def get(self, path: Path, compute: Callable[[Path], Any], kind: str = "") -> Any:
        """`compute(path)`, or what it gave when the file last had this size, times and inode. The value is JSON.

        Two functions, or two versions of one, that may be asked about the same path differ in `kind`.
        """
        name = f"{kind}:{path}"
        status = path.stat()
        stamp = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]  # nobody can set a ctime
        entry = self._entries.get(name)
        if entry is not None and entry[:-1] == stamp:
            return entry[-1]
        value = compute(path)
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _SETTLED_NS:
            self._entries[name] = [*stamp, value]
            self._dirty = True
        return value

    def save(self) -> None:
        """Write the memo, atomically; a read-only disk is no reason to fail."""
        if not self._dirty:
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self._path) as partial, partial.open("w") as file:
                json.dump({"sha256": _checksum(self._entries), "entries": self._entries}, file)
            self._dirty = False


def _load(path: Path) -> dict[str, list[Any]]:
    """The entries of a memo file; none where it is missing, damaged, or no file at all (a pipe would never end)."""
    try:
        document = json.loads(path.read_bytes()) if path.is_file() else {}
        entries: dict[str, list[Any]] = document["entries"]
        sound = document["sha256"] == _checksum(entries) and all(len(entry) == _LENGTH for entry in entries.values())
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
    return entries if sound else {}


def _checksum(entries: dict[str, list[Any]]) -> str:
    return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()
