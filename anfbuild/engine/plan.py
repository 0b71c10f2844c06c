"""What is to go when the store is cleared: a pure function of what is there, the time and the limits.

Least recently used entries go first. What a pin keeps stays, with all that it was made from, and so does what was used
within the grace. Times in the future count as now: clocks differ.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable

from anfbuild.engine.survey import Blob, Entry


@dataclasses.dataclass(frozen=True)
class Limits:
    """What a store is to be kept within; None is no limit. Sizes are of blobs, in bytes; ages in seconds."""

    max_size: int | None = None
    older_than: float | None = None
    grace: float = 86400.0


@dataclasses.dataclass(frozen=True)
class Plan:
    """What goes, the least recently used first, and the bytes of the blobs that stay."""

    entries: tuple[Entry, ...]
    blobs: tuple[Blob, ...]
    remaining: int

    @property
    def freed(self) -> int:
        """Bytes of the blobs that go."""
        return sum(blob.size for blob in self.blobs)


def plan(entries: Iterable[Entry], blobs: Iterable[Blob], pinned: frozenset[str], now: float, limits: Limits) -> Plan:
    """Choose the entries and blobs to remove. Only blobs that no entry left names go."""
    by_key = {entry.key: entry for entry in entries}
    there = {blob.sha: blob for blob in blobs}
    kept = _with_needs(pinned, by_key)
    candidates = sorted(
        (entry for entry in by_key.values() if entry.key not in kept and _age(entry.used, now) > limits.grace),
        key=lambda entry: (entry.used, entry.key),
    )
    named = Counter(sha for entry in by_key.values() for sha in entry.blobs)

    def free(sha: str) -> bool:
        return not named[sha] and _age(there[sha].used, now) > limits.grace

    remaining = sum(blob.size for sha, blob in there.items() if not free(sha))
    gone = []
    for entry in candidates:
        too_old = limits.older_than is not None and _age(entry.used, now) > limits.older_than
        too_much = limits.max_size is not None and remaining > limits.max_size
        if not (too_old or too_much):
            break  # all others were used later
        gone.append(entry)
        named.subtract(dict.fromkeys(entry.blobs, 1))
        remaining -= sum(there[sha].size for sha in entry.blobs if sha in there and free(sha))
    freed = sorted((blob for sha, blob in there.items() if free(sha)), key=lambda blob: (blob.used, blob.sha))
    return Plan(tuple(gone), tuple(freed), remaining)


def _age(used: float, now: float) -> float:
    return max(0.0, now - used)


def _with_needs(pinned: frozenset[str], entries: dict[str, Entry]) -> set[str]:
    """The pinned keys and those of all that their results were made from."""
    kept: set[str] = set()
    pending = list(pinned)
    while pending:
        key = pending.pop()
        if key not in kept:
            kept.add(key)
            pending += entries[key].needs if key in entries else ()
    return kept
