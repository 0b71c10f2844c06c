"""A sweep from its overrides to its results, and one that goes on where it was interrupted."""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig

from anfbuild.cli.build import store_root
from anfbuild.cli.console import Console
from anfbuild.cli.seam import Build
from anfbuild.cli.sweep import launch, records
from anfbuild.cli.sweep.jobs import Job, expand
from anfbuild.cli.sweep.progress import Progress
from anfbuild.cli.sweep.results import Sweep, collect
from anfbuild.cli.sweep.task import Task, keep, wait_for_workers
from anfbuild.cli.sweep.workers import environment
from anfbuild.errors import AnfbuildError, RecipeError, StepError
from anfbuild.recipe import compose
from anfbuild.recipe.catalogue import Catalogue
from anfbuild.recipe.composition import is_hydra, parse

_MAKE_ROOM = (
    "Make it writable, with room on its disk and nothing else in that place, and run again, or anfbuild -m --resume "
    "latest: what is finished is kept."
)
_MOST = 8
"""Jobs that a message names."""
_PATIENCE_S = 10
"""How long an interrupted sweep waits for workers that end themselves."""


def sweep(overrides: Sequence[str], project: Path, build: Build, console: Console, *, debug: bool = False) -> Sweep:
    """Build every combination that `overrides` give, below `artifacts/sweeps/ID/` of the project.

    Raises RecipeError: no recipe, no combination or too many, unreadable overrides, no such launcher or sweeper.
    StepError: the sweep's folder cannot be used. KeyboardInterrupt passes if no job has ended by then; else the jobs
    that have are the result.
    """
    request = _Request(tuple(overrides), project, build, console, debug)
    if not any(item.key_or_group == "recipe" for item in request.parsed):
        compose(overrides, project)  # says which recipes there are
    folder = records.new(project)
    config = request.configuration(folder)
    jobs = None if launch.makes_up_jobs(config) else expand(request.swept(config))
    if jobs == []:
        raise RecipeError("there is nothing to build", where="command line", remedy="Look at what the globs match.")
    records.make(folder)
    try:
        with _disk_errors(folder):
            records.write_plan(folder, overrides, jobs)
            with records.held(folder):
                result = _run(request, config, folder, jobs)
        return _with_jobs(result)
    finally:
        if not records.records(folder):
            shutil.rmtree(folder, ignore_errors=True)


def resume(name: str, project: Path, build: Build, console: Console, *, debug: bool = False) -> Sweep:
    """Run those jobs of the sweep called `name` that did not end or in which a step failed; `latest` is the newest.

    The other jobs' records stay as they are. Raises RecipeError: no such sweep, it runs already, or it cannot be gone
    on with. StepError: its folder cannot be used. KeyboardInterrupt passes if no job has ended by then.
    """
    folder = records.find(project, name)
    overrides, jobs = records.read_plan(folder)
    request = _Request(tuple(overrides), project, build, console, debug)
    with _disk_errors(folder), records.held(folder):
        (folder / records.STOP).unlink(missing_ok=True)
        return _with_jobs(_run(request, request.configuration(folder), folder, jobs))


@dataclasses.dataclass(frozen=True)
class _Request:
    """What was asked for, and of whom."""

    overrides: tuple[str, ...]
    project: Path
    build: Build
    console: Console
    debug: bool

    def __post_init__(self) -> None:
        for item in self.parsed:
            launch.check(item, self.catalogue.loader)

    @functools.cached_property
    def catalogue(self) -> Catalogue:
        """The recipes and groups that the project sees."""
        return Catalogue(self.project.resolve(), launch.Loader)

    @functools.cached_property
    def parsed(self) -> list[Override]:
        """The overrides, read."""
        return parse(self.overrides, self.catalogue.loader)

    @property
    def task_lines(self) -> list[str]:
        """The overrides that are for the jobs."""
        return [item.input_line or "" for item in self.parsed if not is_hydra(item)]

    def configuration(self, folder: Path) -> DictConfig:
        """How Hydra runs the sweep in `folder`."""
        hydras = [item.input_line or "" for item in self.parsed if is_hydra(item)]
        return launch.configuration(hydras, str(folder), self.task_lines)

    def swept(self, config: DictConfig) -> list[Override]:
        """What the jobs are made of: what the sweeper is configured with, then the command line."""
        params = [f"{key}={value}" for key, value in (config.hydra.sweeper.params or {}).items()]
        return parse([*params, *self.task_lines], self.catalogue.loader)

    def task(self, config: DictConfig, folder: Path, jobs: Sequence[Job] | None) -> Task:
        """What a launcher calls for each of `jobs`, or for those that the sweeper makes up."""
        numbers = None if jobs is None else [job.number for job in jobs]
        return Task(
            self.project,
            folder,
            store_root(self.project) / "memo" / "recipes",
            frozenset(item.input_line or "" for item in self.parsed if not item.is_sweep_override()),
            self.build,
            self.console,
            self.debug,
            None if numbers is None or numbers == list(range(len(numbers))) else tuple(numbers),
            environment(config.hydra.launcher, 1 if jobs is None else len(jobs)),
        )


def _run(request: _Request, config: DictConfig, folder: Path, jobs: Sequence[Job] | None) -> Sweep:
    """Run the jobs that are not ended, or those that the sweeper makes up, and collect what there is then."""
    pending = None if jobs is None else records.pending(folder, jobs)
    task = request.task(config, folder, pending)
    loader = request.catalogue.loader
    total = None if jobs is None else len(jobs)
    ended = total - len(pending) if total is not None and pending is not None else 0
    try:
        with Progress(folder, total, request.console, ended):
            try:
                if pending is None:
                    launch.run_sweeper(loader, config, task)
                elif pending:
                    for job, returned in launch.run(loader, config, task, pending):
                        keep(folder, job, returned)
            except KeyboardInterrupt:
                (folder / records.STOP).touch()
                launch.shut_down()
                if launch.outlives(config):
                    wait_for_workers(folder, _PATIENCE_S)
                raise
    except KeyboardInterrupt:
        return collect(folder, records.records(folder), interrupted=True)
    except AnfbuildError as error:
        return collect(folder, records.records(folder), error=error)
    kept = records.records(folder)
    return collect(folder, kept, error=_lost(folder, jobs or (), {record["job"] for record in kept}))


def _lost(folder: Path, jobs: Iterable[Job], kept: Collection[int]) -> StepError | None:
    """What to tell of jobs that ran and left no record, as those in `kept` did: nobody knows whether they failed."""
    lost = [str(job.number) for job in jobs if job.number not in kept]
    if not lost:
        return None
    more = f" and {len(lost) - _MOST} more" if len(lost) > _MOST else ""
    return StepError(
        f"no record could be kept of job {', '.join(lost[:_MOST])}{more}", where=str(folder), remedy=_MAKE_ROOM
    )


@contextmanager
def _disk_errors(folder: Path) -> Iterator[None]:
    """What the sweep's folder does not take or give, as an error that a user can act on."""
    try:
        yield
    except OSError as error:
        raise StepError(
            f"the sweep's folder cannot be used: {error.strerror or error}",
            where=str(error.filename2 or error.filename or folder),
            remedy=_MAKE_ROOM,
        ) from error


def _with_jobs(result: Sweep) -> Sweep:
    """The result, or why there is none."""
    if result.jobs:
        return result
    if result.interrupted:
        raise KeyboardInterrupt
    raise result.error or RecipeError("no job left a record", where=str(result.folder), remedy="Run with --debug.")
