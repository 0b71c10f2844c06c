"""What a launcher calls for each job, in whatever process on whatever machine it uses."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.core.utils import JobReturn
from omegaconf import DictConfig, OmegaConf

from anfbuild.cli.console import Console
from anfbuild.cli.seam import Build, describe
from anfbuild.cli.sweep import records, state
from anfbuild.cli.sweep.jobs import Job, folder_name
from anfbuild.cli.sweep.results import record
from anfbuild.errors import AnfbuildError
from anfbuild.recipe import compose

_POLL_S = 0.5


def here() -> tuple[str, int]:
    """This process, among those of all machines."""
    return platform.node(), os.getpid()


@dataclasses.dataclass(frozen=True)
class Task:
    """Builds the job that Hydra's config names, and returns its record; the record is in the job's folder too.

    `numbers` maps Hydra's numbers to the sweep's, where they differ. `fixed` are the overrides that all jobs have.
    `environment` is for workers that have no values of their own. `origin` is the process of the sweep itself.
    """

    project: Path
    folder: Path
    memory: Path
    fixed: frozenset[str]
    build: Build
    console: Console
    debug: bool
    numbers: Sequence[int] | None = None
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    origin: tuple[str, int] = dataclasses.field(default_factory=here)

    def __call__(self, _config: DictConfig) -> dict[str, Any]:
        """What a launcher of Hydra's calls."""
        hydra = HydraConfig.get()
        number = int(hydra.job.num) if self.numbers is None else self.numbers[int(hydra.job.num)]
        lines = OmegaConf.to_container(hydra.overrides.task, resolve=False)  # a `${x}` is the recipe's
        assert isinstance(lines, list)
        return self.run(number, [str(line) for line in lines])

    def run(self, number: int, overrides: Sequence[str]) -> dict[str, Any]:
        """Build one job. What goes wrong is in the record; KeyboardInterrupt passes."""
        varied = tuple(item for item in overrides if item not in self.fixed)
        folder = self.folder / folder_name(number, varied)
        for name, value in self.environment.items():
            os.environ.setdefault(name, value)
        with contextlib.suppress(OSError):  # the record goes back to the launcher as well
            folder.mkdir(parents=True, exist_ok=True)
        reporter = state.Reporter(folder, number, varied)
        try:
            with self._stoppable():
                outcome = self._outcome(overrides, folder, reporter)
        except KeyboardInterrupt:
            reporter.end(state.INTERRUPTED)
            raise
        made = {"job": number, "folder": folder.name, "overrides": list(varied), **outcome}
        with contextlib.suppress(OSError):
            records.write_record(self.folder, made)
        code = int(made["exit_code"])
        reporter.end(state.DONE if code == 0 else state.FAILED, code)
        return made

    @contextlib.contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Let the interrupted sweep interrupt this job, by a file, where no launcher ends its workers for it."""
        if here() == self.origin:
            yield
            return
        stop, over = self.folder / records.STOP, threading.Event()

        def watch() -> None:
            while not over.is_set():
                if stop.exists():
                    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
                    return
                over.wait(_POLL_S)

        watcher = threading.Thread(target=watch, daemon=True)
        if hasattr(signal, "pthread_kill"):
            watcher.start()
        try:
            yield
        finally:
            over.set()

    def _outcome(self, overrides: Sequence[str], folder: Path, reporter: state.Reporter) -> dict[str, Any]:
        try:
            recipe = compose(overrides, self.project, self.memory)
            outcome = self.build(recipe, self.project, latest=False, folder=folder, notify=reporter.tell)
        except AnfbuildError as error:
            self._trace(error)
            return record(error.exit_code, error=describe(error))
        except Exception as error:
            self._trace(error)
            text = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
            return record(1, error={"what": text, "remedy": "Run the job alone with --debug."})
        if outcome.error is not None:
            self._trace(outcome.error)
        told = describe(outcome.error) if outcome.error is not None else None
        return {
            **record(outcome.exit_code, key=outcome.key, results=outcome.results, error=told),
            "planned": list(outcome.planned),
            "steps": list(outcome.steps),
            "failed": outcome.failed,
            "contract": outcome.to_json().get("contract"),
        }

    def _trace(self, error: BaseException) -> None:
        if self.debug:
            self.console.print("".join(traceback.format_exception(error)))


def keep(folder: Path, job: Job, returned: JobReturn) -> None:
    """Keep the record that a launcher brought back, where the worker wrote it elsewhere or not at all."""
    own = folder / folder_name(job.number, job.varied)
    try:
        made = returned.return_value
    except Exception as error:
        text = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
        failed = record(1, error={"what": text, "remedy": "Run the job alone with --debug."})
        made = {"job": job.number, "folder": own.name, "overrides": list(job.varied), **failed}
    if records.read(own) == made:
        return
    records.write_record(folder, made)
    code = int(made["exit_code"])
    state.Reporter(own, job.number, job.varied).end(state.DONE if code == 0 else state.FAILED, code)


def wait_for_workers(folder: Path, seconds: float) -> None:
    """Wait until no job says that it runs, for a while."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        states = [state.read(path.parent) for path in folder.glob(f"*/{state.FILE}")]
        if all(known is None or known.ended for known in states):
            return
        time.sleep(_POLL_S)
