"""Clearing the store: what a plan lets go, and what broken or ended processes left behind.

A build beside it builds something again at worst, as long as there is a grace: it gives up where the same input
vanishes three times. Entries go before the blobs that they name.
"""

from __future__ import annotations

import dataclasses
import shutil
import time
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

from anfbuild.engine.pins import pin_files, pinned_keys
from anfbuild.engine.plan import Limits, Plan, plan
from anfbuild.engine.store import Store
from anfbuild.engine.survey import (
    blobs,
    dead_workspaces,
    entries,
    entry_files,
    is_there,
    older,
    partial_files,
    size_below,
)

_WRITING_S = 3600.0
"""A partial file younger than this may be one that is being written now, whatever the grace."""


@dataclasses.dataclass(frozen=True)
class Litter:
    """What nothing in the store needs: files and folders, by what they are."""

    quarantine: tuple[Path, ...] = ()
    workspaces: tuple[Path, ...] = ()
    partial: tuple[Path, ...] = ()
    metas: tuple[Path, ...] = ()
    """Of entries that are gone, or go."""
    builds: tuple[Path, ...] = ()
    """Records of builds whose goal has no entry, or one that goes."""

    @property
    def paths(self) -> Iterable[Path]:
        return (*self.quarantine, *self.workspaces, *self.partial, *self.metas, *self.builds)


@dataclasses.dataclass(frozen=True)
class Cleared:
    """What goes, or went; `litter_bytes` is what the litter holds."""

    plan: Plan
    litter: Litter
    litter_bytes: int


def clear(store: Store, limits: Limits, *, delete: bool) -> Cleared:
    """Find what goes, and remove it if `delete`. Raises StepError: no store, a pin that cannot be read.

    While it deletes it holds the lock that commits hold, so that no blob goes that an entry is about to name.
    """
    if not is_there(store):
        return Cleared(Plan((), (), 0), Litter(), 0)
    with store.lock("commit") if delete else nullcontext():
        now = time.time()
        chosen = plan(entries(store), blobs(store), pinned_keys(store), now, limits)
        litter = _litter(store, chosen, now - limits.grace, now - max(limits.grace, _WRITING_S))
        cleared = Cleared(chosen, litter, size_below(litter.paths))
        if delete:
            for entry in chosen.entries:
                store.entry(entry.key).unlink(missing_ok=True)
            for blob in chosen.blobs:
                store.blob(blob.sha).unlink(missing_ok=True)
            for path in litter.paths:
                _remove(path)
    return cleared


def _litter(store: Store, chosen: Plan, before: float, written_before: float) -> Litter:
    root = store.root
    live = {path.name for path in entry_files(store)} - {f"{entry.key}.json" for entry in chosen.entries}
    pinned = {(path.parent.name, path.name) for path in pin_files(store)}
    return Litter(
        quarantine=tuple(sorted((root / "quarantine").glob("*"))),
        workspaces=tuple(dead_workspaces(store, before)),
        partial=tuple(older(partial_files(store), written_before)),
        metas=tuple(older((p for p in (root / "meta").glob("*.json") if p.name not in live), before)),
        builds=tuple(
            older(
                (
                    path
                    for path in (root / "builds").glob("*/*.json")
                    if path.name not in live and (path.parent.name, path.name) not in pinned
                ),
                before,
            )
        ),
    )


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
