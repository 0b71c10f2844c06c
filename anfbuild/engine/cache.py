"""The cache that a build sees: the store, and behind it what a remote has.

An entry of the remote is taken over at once, its bytes when a step or an export needs them. What is private is neither
asked for nor sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anfbuild.engine.result import Result
from anfbuild.engine.store import Store


class Cache:
    """Results by key, from wherever they are."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def lookup(self, key: str, meta: Mapping[str, Any], *, private: bool) -> Result | None:  # noqa: ARG002
        """The result under `key`, or None. `meta` is kept beside an entry that comes from elsewhere."""
        return self.store.lookup(key)

    def ensure(self, blobs: Iterable[tuple[str, int]]) -> bool:
        """Whether all `blobs`, as (SHA-256, bytes), are in the store, or could be brought there."""
        return not self.store.missing(blobs)

    def commit(self, key: str, folder: Path, meta: Mapping[str, Any], *, private: bool) -> Result:
        """Take the files of `folder` as the result under `key`."""
        return self.store.commit(key, folder, meta, private=private)

    def close(self) -> None:
        """Finish what is on its way, within bounds."""
