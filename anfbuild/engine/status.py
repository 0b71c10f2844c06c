"""What the store holds: how many entries and bytes, of which recipes and steps, how much of it is kept or private."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from anfbuild.engine.pins import pin_files, read_pin
from anfbuild.engine.store import Store
from anfbuild.engine.survey import Entry, blobs, entries, is_there, size_below
from anfbuild.errors import StepError


@dataclasses.dataclass(frozen=True)
class Row:
    """The entries of one recipe or one step. A blob that several rows name counts in each."""

    name: str
    entries: int
    bytes: int
    used: float
    """When one of them was last used, in seconds since 1970."""
    pinned: int
    private: int
    elsewhere: int
    """Entries made elsewhere whose bytes are not, or not all, in this store."""


@dataclasses.dataclass(frozen=True)
class Status:
    """A store at a glance; sizes in bytes. In the totals each blob counts once."""

    entries: int = 0
    blobs: int = 0
    blob_bytes: int = 0
    quarantine: int = 0
    quarantine_bytes: int = 0
    tmp: int = 0
    tmp_bytes: int = 0
    pinned: int = 0
    private: int = 0
    elsewhere: int = 0
    used: float | None = None
    pins: int = 0
    recipes: tuple[Row, ...] = ()
    steps: tuple[Row, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As one JSON mapping; times are ISO 8601, UTC."""
        document = dataclasses.asdict(self)
        for part in (document, *document["recipes"], *document["steps"]):
            part["used"] = None if part["used"] is None else show_time(part["used"])
        return document


def status(store: Store) -> Status:
    """Look at the store, changing nothing. Raises StepError: the folder is no store."""
    if not is_there(store):
        return Status()
    there, sizes = entries(store), {blob.sha: blob.size for blob in blobs(store)}
    pinned: set[str] = set()
    for path in pin_files(store):
        with suppress(StepError):  # `verify` tells of a damaged one
            pinned |= read_pin(path)
    rows = _Rows(there, sizes, pinned)
    quarantine, tmp = (list((store.root / name).glob("*")) for name in ("quarantine", "tmp"))
    total = rows.row("", there)
    return Status(
        entries=len(there),
        blobs=len(sizes),
        blob_bytes=sum(sizes.values()),
        quarantine=len(quarantine),
        quarantine_bytes=size_below(quarantine),
        tmp=len(tmp),
        tmp_bytes=size_below(tmp),
        pinned=total.pinned,
        private=total.private,
        elsewhere=total.elsewhere,
        used=total.used if there else None,
        pins=len(pin_files(store)),
        recipes=rows.by(lambda entry: entry.recipes),
        steps=rows.by(lambda entry: [entry.step]),
    )


@dataclasses.dataclass(frozen=True)
class _Rows:
    entries: list[Entry]
    sizes: dict[str, int]
    pinned: set[str]

    def by(self, names: Callable[[Entry], Iterable[str]]) -> tuple[Row, ...]:
        """A row for each name that an entry has, the largest first."""
        groups: dict[str, list[Entry]] = {}
        for entry in self.entries:
            for name in names(entry):
                groups.setdefault(name, []).append(entry)
        rows = [self.row(name, group) for name, group in groups.items()]
        return tuple(sorted(rows, key=lambda row: (-row.bytes, row.name)))

    def row(self, name: str, group: list[Entry]) -> Row:
        shas = {sha for entry in group for sha in entry.blobs}
        return Row(
            name,
            len(group),
            sum(self.sizes.get(sha, 0) for sha in shas),
            max((entry.used for entry in group), default=0.0),
            sum(entry.key in self.pinned for entry in group),
            sum(entry.private for entry in group),
            sum(entry.remote and any(sha not in self.sizes for sha in entry.blobs) for entry in group),
        )


def show_time(seconds: float) -> str:
    """ISO 8601, UTC, to the minute."""
    try:
        return time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(seconds))
    except (OverflowError, ValueError, OSError):  # a clock beyond all calendars
        return "?"
