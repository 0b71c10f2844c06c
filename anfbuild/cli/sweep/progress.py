"""What the jobs are at, shown while they run: a table on a terminal, else a line when a job starts and when it ends.

The jobs say it in their folders, so any launcher will do that shares a file system.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from anfbuild.cli.console import Console, visible
from anfbuild.cli.sweep import state
from anfbuild.cli.sweep.state import State

if TYPE_CHECKING:
    from rich.table import Table

_POLL_S = 0.25
_NONE = "?"
_SHARE = 20
"""Of the time, one part of so many at the most goes into looking."""
_ROWS = 20


class Progress:
    """Shows the jobs in `folder` as long as its block runs. `ended` of the sweep's `total` jobs ended before."""

    def __init__(self, folder: Path, total: int | None, console: Console, ended: int = 0) -> None:
        self._folder = folder
        self._total = total
        self._console = console
        self._states: dict[int, tuple[State, float]] = {}
        self._seen: dict[str, tuple[int, int]] = {}
        self._finished = ended
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._live: Any = None
        self._mark()

    def __enter__(self) -> Progress:
        if self._console.is_terminal:
            from rich.console import Console as RichConsole
            from rich.live import Live

            self._live = Live(
                console=RichConsole(file=self._console.stream),
                get_renderable=lambda: live_table(self._now(), self._finished, self._total),
                transient=True,
            )
            self._live.start()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()
        if self._live is not None:
            self._live.stop()

    def _watch(self) -> None:
        pause = _POLL_S
        while not self._over.wait(pause):
            started = time.monotonic()
            self._look()
            pause = max(_POLL_S, _SHARE * (time.monotonic() - started))

    def _now(self) -> list[State]:
        """The states with the time that has passed since they were told."""
        now = time.monotonic()
        return [
            known if known.ended else dataclasses.replace(known, seconds=known.seconds + now - told)
            for known, told in list(self._states.values())
        ]

    def _mark(self) -> None:
        """Take what earlier runs of the sweep left for seen."""
        for _ in self._changed():
            pass

    def _look(self) -> None:
        for name in self._changed():
            known = state.read(self._folder / name)
            if known is not None:
                self._show(known)

    def _changed(self) -> Iterable[str]:
        """The folders whose state was written since the last look."""
        with contextlib.suppress(OSError), os.scandir(self._folder) as entries:
            for name in sorted(entry.name for entry in entries):
                try:
                    status = (self._folder / name / state.FILE).stat()
                except OSError:
                    continue
                stamp = (status.st_mtime_ns, status.st_ino)
                if self._seen.get(name) != stamp:
                    self._seen[name] = stamp
                    yield name

    def _show(self, new: State) -> None:
        known = new.job in self._states
        self._states[new.job] = new, time.monotonic()
        if new.state in (state.DONE, state.FAILED):
            self._finished += 1
        if self._live is None and (not known or new.ended):
            self._console.print(line(new, self._finished, self._total))


def line(known: State, finished: int, total: int | None) -> str:
    """A job's start or end in words: `job 3 done 12.3 s (5/8): calibration=mse`."""
    words = {
        state.RUNNING: "started",
        state.DONE: f"done {known.seconds:.1f} s",
        state.FAILED: f"failed {known.seconds:.1f} s, exit {known.exit_code}",
        state.INTERRUPTED: "interrupted",
    }
    count = f" ({finished}/{_NONE if total is None else total})" if known.ended else ""
    return f"job {known.job} {words[known.state]}{count}: {' '.join(known.overrides)}"


def live_table(states: Iterable[State], finished: int, total: int | None) -> Table:
    """The jobs that run, and of the others the ones that ended last, with how many are finished."""
    from rich.box import SIMPLE
    from rich.table import Table
    from rich.text import Text

    listed = sorted(states, key=lambda known: (known.ended, -known.job if known.ended else known.job))[:_ROWS]
    table = Table(box=SIMPLE, pad_edge=False, title=f"{finished} of {_NONE if total is None else total} jobs finished")
    for heading in ("job", "overrides", "step", "state", "s"):
        table.add_column(heading, overflow="fold")
    for known in sorted(listed, key=lambda known: known.job):
        at = known.state if known.ended else {"hit": "cached", "start": "running"}.get(known.event or "", known.event)
        cells = (str(known.job), " ".join(known.overrides), known.step or "", at or "", f"{known.seconds:.1f}")
        table.add_row(*(Text(visible(cell)) for cell in cells))
    return table
