"""Is everything in the store what it should be? Every blob is hashed, every entry and what is known of it is read.

Builds may run meanwhile: what looks damaged is looked at again while nobody commits, before it is put aside.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

from anfbuild.engine.files import NotRegular, hash_regular, read_regular
from anfbuild.engine.pins import pin_files, read_pin
from anfbuild.engine.store import Store
from anfbuild.engine.survey import (
    blob_files,
    dead_workspaces,
    entries,
    entry_files,
    is_there,
    partial_files,
    read_entry,
)
from anfbuild.errors import StepError

FOLDERS = ("ac", "cas", "meta", "builds", "pins", "locks", "tmp", "memo", "downloads", "quarantine")


@dataclasses.dataclass(frozen=True)
class Damage:
    """A file that is not what it should be: `kind` is blob, entry, meta, pin or folder."""

    kind: str
    path: Path
    why: str
    quarantined: bool = False


@dataclasses.dataclass(frozen=True)
class Verified:
    """What was looked at, what is wrong, and what is only left over."""

    entries: int = 0
    blobs: int = 0
    bytes: int = 0
    damage: tuple[Damage, ...] = ()
    notes: tuple[str, ...] = ()


def verify(store: Store, progress: Callable[[int, int], None] = lambda _done, _all: None) -> Verified:
    """Look at everything, and put aside what is damaged where the store can be written.

    `progress` is told of blobs: how many are done, of how many. Raises StepError: the folder is no store.
    """
    if not is_there(store):
        return Verified()
    damage = [
        Damage("folder", path, "it is no folder")
        for name in FOLDERS
        if (path := store.root / name).exists() and not path.is_dir()
    ]
    names = list(blob_files(store))
    size = 0
    for done, path in enumerate(names, 1):
        if _blob_fault(path) is not None:
            with _no_commits(store):
                damage += _put_aside(store, "blob", path, _blob_fault(path))
        with suppress(FileNotFoundError):
            size += path.stat().st_size
        progress(done, len(names))
    with _no_commits(store):
        for path in sorted((store.root / "meta").glob("*.json")):
            damage += _meta_damage(store, path)
        for path in entry_files(store):
            damage += _put_aside(store, "entry", path, _entry_fault(store, path))
        notes = tuple(_notes(store, names))
    for path in pin_files(store):
        damage += _pin_damage(path)
    return Verified(len(entry_files(store)), len(names), size, tuple(damage), notes)


def _no_commits(store: Store) -> ExitStack:
    """Hold the lock that commits hold; on a store that cannot be written, where there are none, hold nothing."""
    stack = ExitStack()
    with suppress(OSError, StepError):
        stack.enter_context(store.lock("commit"))
    return stack


def _put_aside(store: Store, kind: str, path: Path, fault: str | None) -> list[Damage]:
    if fault is None:
        return []
    store.quarantine(path)
    return [Damage(kind, path, fault, quarantined=not os.path.lexists(path))]


def _blob_fault(path: Path) -> str | None:
    """What is wrong with a blob; None for a sound one, and for one that is gone by now."""
    try:
        return None if hash_regular(path) == path.name else "its bytes have another SHA-256"
    except FileNotFoundError:
        return None
    except NotRegular:
        return "it is no file"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"


def _entry_fault(store: Store, path: Path) -> str | None:
    try:
        result = read_entry(path)
    except FileNotFoundError:
        return None
    except NotRegular:
        return "it is no file"
    except ValueError as error:
        return f"it is no entry: {error}"
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    missing = [] if result.remote else store.missing(result.files.values())
    return f"bytes that it names are missing: {missing[0][0]}" if missing else None


def _meta_damage(store: Store, path: Path) -> list[Damage]:
    """Damage of what is known of a result's making. Its entry goes too, else no build would make it again."""
    try:
        fault = None if isinstance(json.loads(read_regular(path)), dict) else "it is no mapping"
    except FileNotFoundError:
        return []
    except (OSError, ValueError, RecursionError) as error:
        fault = f"it cannot be read: {error}"
    if fault is not None:
        store.quarantine(store.root / "ac" / path.name)
    return _put_aside(store, "meta", path, fault)


def _pin_damage(path: Path) -> list[Damage]:
    """A pin stays where it is: without it, what it keeps would be cleared."""
    try:
        read_pin(path)
    except StepError as error:
        return [Damage("pin", path, error.what)]
    return []


def _notes(store: Store, blobs: Iterable[Path]) -> Iterator[str]:
    now = time.time()
    named = {sha for entry in entries(store) for sha in entry.blobs}
    for count, what in (
        (sum(path.name not in named and path.exists() for path in blobs), "blob(s) that no entry names"),
        (len(list(partial_files(store))), "partial file(s)"),
        (len(list(dead_workspaces(store, now))), "workspace(s) that nobody uses"),
    ):
        if count:
            yield f"{count} {what}"
