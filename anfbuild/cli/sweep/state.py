"""What a job is at, in a small file in its folder that others read while it runs."""

from __future__ import annotations

import dataclasses
import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from anfbuild.atomic import replacing
from anfbuild.engine.files import read_regular
from anfbuild.engine.run import Event

RUNNING, DONE, FAILED, INTERRUPTED = "running", "done", "failed", "interrupted"
FILE = "state.json"
_LAG_S = 0.2
"""How often a job that finds one step after the other in the store says so."""


@dataclasses.dataclass(frozen=True)
class State:
    """`state` is running, done, failed or interrupted; `step` and `event` are what was told last; `seconds` are those
    since the job began."""

    job: int
    overrides: tuple[str, ...]
    state: str = RUNNING
    step: str | None = None
    event: str | None = None
    seconds: float = 0.0
    exit_code: int | None = None

    @property
    def ended(self) -> bool:
        """Whether the job will say no more."""
        return self.state != RUNNING


def read(folder: Path) -> State | None:
    """The state in a job's folder; None where there is none that can be read."""
    try:
        fields: dict[str, Any] = json.loads(read_regular(folder / FILE))
        return State(**{**fields, "overrides": tuple(fields["overrides"])})
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None


class Reporter:
    """Keeps the file of one job up to date."""

    def __init__(self, folder: Path, job: int, overrides: tuple[str, ...]) -> None:
        self._folder = folder
        self._started = time.monotonic()
        self._written = 0.0
        self._state = State(job, overrides)
        self._write()

    def tell(self, event: Event) -> None:
        """Note what a step is at."""
        self._state = dataclasses.replace(self._state, step=event.step, event=event.kind)
        if event.kind != "hit" or time.monotonic() - self._written > _LAG_S:
            self._write()

    def end(self, state: str, exit_code: int | None = None) -> None:
        """Note that and how the job ended."""
        self._state = dataclasses.replace(self._state, state=state, exit_code=exit_code)
        self._write()

    def _write(self) -> None:
        self._written = time.monotonic()
        self._state = dataclasses.replace(self._state, seconds=round(self._written - self._started, 3))
        with suppress(OSError):  # what cannot be told does not change a build
            write(self._folder / FILE, dataclasses.asdict(self._state))


def write(path: Path, document: dict[str, Any], indent: int | None = None) -> None:
    """Write a document as JSON, atomically. Raises OSError. `indent` is for people: Python's fast
    encoder does not indent."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(document, indent=indent) + "\n", encoding="utf-8")
