"""What was once worked out about a file, remembered until the file changes.

A memo is a convenience: losing it, or reading a damaged one, costs time and nothing else.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# A file written twice within one tick of the clock of its file system, with the same size, looks unchanged.
# What is younger than this is therefore not remembered.
_SETTLED_NS = 2_000_000_000


class Memo:
    """A JSON file that maps a path to a value derived from that file's bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._entries: dict[str, list[Any]] = {}
        self._dirty = False
        try:
            loaded = json.loads(path.read_bytes())
        except (OSError, ValueError):
            return
        if isinstance(loaded, dict):
            self._entries = {k: v for k, v in loaded.items() if isinstance(v, list) and len(v) == 4}

    def get(self, path: Path, compute: Callable[[Path], Any]) -> Any:
        """`compute(path)`, or what it gave when the file last had this size, time and inode. The value is JSON."""
        status = path.stat()
        stamp = [status.st_size, status.st_mtime_ns, status.st_ino]
        entry = self._entries.get(str(path))
        if entry is not None and entry[:3] == stamp:
            return entry[3]
        value = compute(path)
        if time.time_ns() - status.st_mtime_ns > _SETTLED_NS:
            self._entries[str(path)] = [*stamp, value]
            self._dirty = True
        return value

    def save(self) -> None:
        """Write the memo, atomically; a read-only disk is no reason to fail."""
        if not self._dirty:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self._path.parent)
            with os.fdopen(handle, "w") as file:
                json.dump(self._entries, file)
            Path(name).replace(self._path)
        except OSError:
            return
        self._dirty = False
