"""The cache that a build sees: the store, and behind it what a remote has.

An entry of the remote is taken over at once, its bytes when a step or an export needs them. What is private is neither
asked for nor sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anfbuild.engine.result import Result
from anfbuild.engine.store import Store

if TYPE_CHECKING:
    from anfbuild.engine.remote.shared import Shared


class Cache:
    """Results by key, from wherever they are."""

    def __init__(self, store: Store, remote: Shared | None = None) -> None:
        self.store = store
        self._remote = remote
        self._taken: set[str] = set()

    def lookup(self, key: str, meta: Mapping[str, Any], *, private: bool) -> Result | None:
        """The result under `key`, or None. `meta` is kept beside an entry that comes from elsewhere."""
        found = self.store.lookup(key)
        if found is not None or self._remote is None or private:
            return found
        found = self._remote.find(key, self.store)
        if found is None:
            return None
        self._taken.add(key)
        return self.store.enter(found, meta)

    def origin(self, key: str) -> str:
        """Where the look-up of `key` found its result: local or remote."""
        return "remote" if key in self._taken else "local"

    def ensure(self, blobs: Iterable[tuple[str, int]], *, private: bool) -> bool:
        """Whether all `blobs`, as (SHA-256, bytes), are in the store, or could be brought there."""
        missing = self.store.missing(blobs)
        if not missing:
            return True
        return self._remote is not None and not private and self._remote.fetch(missing, self.store)

    def commit(self, key: str, folder: Path, meta: Mapping[str, Any], *, private: bool) -> Result:
        """Take the files of `folder` as the result under `key`; unless it is private, a remote gets it too."""
        result = self.store.commit(key, folder, meta, private=private)
        if self._remote is not None and not private:
            self._remote.upload(meta["manifest"]["step"], result, self.store)
        self._taken.discard(key)
        return result

    def close(self, *, wait: bool = True) -> None:
        """Finish what is on its way, within bounds; without `wait`, let it go."""
        if self._remote is not None:
            self._remote.close(wait=wait)
