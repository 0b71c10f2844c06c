"""One build: a composed recipe goes through the graph, and what it made is laid out under artifacts/."""

from __future__ import annotations

import dataclasses
import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anfbuild
from anfbuild.cli import interruption
from anfbuild.cli.console import Console
from anfbuild.cli.contract import Hold
from anfbuild.cli.disagreement import agreed
from anfbuild.cli.export import export, point, steps_of
from anfbuild.cli.host import host
from anfbuild.cli.located import located
from anfbuild.cli.outcome import Outcome
from anfbuild.cli.preflight import check
from anfbuild.cli.remotes import shared
from anfbuild.engine.cache import Cache
from anfbuild.engine.code import CodeIndex
from anfbuild.engine.files import at_home
from anfbuild.engine.instances import Part, part_of
from anfbuild.engine.memo import Memo
from anfbuild.engine.run import Build, Event
from anfbuild.engine.store import Store
from anfbuild.errors import AnfbuildError, StepError
from anfbuild.recipe import Recipe

if TYPE_CHECKING:
    from anfbuild.engine.remote.settings import Settings
    from anfbuild.engine.remote.shared import Shared

PACKAGE = Path(anfbuild.__file__).parent


def build(
    recipe: Recipe,
    project: Path,
    *,
    latest: bool,
    folder: Path | None,
    notify: Callable[[Event], None],
    lock: str | None = None,
    accept: bool = False,
    remote: Settings | None = None,
) -> Outcome:
    """Bring the recipe's goal up to date and export it.

    `folder` is where the files go, by default `artifacts/builds/NAME/<key12>`; `latest` moves the link of that name
    beside it to this build, if that is a whole one and does not break its lock. `lock` is `--lock`, to write what was
    built into the recipe's lock, or `--locked`, to hold the build to it; `accept` writes the placement contract, which
    the build is held to otherwise; `remote` shares results with others. Raises nothing that a user can cause: errors
    are in the outcome. KeyboardInterrupt passes.
    """
    started = time.perf_counter(), time.process_time()
    run: Build | None = None
    planned: Sequence[str] = ()
    builds = project / "artifacts" / "builds" / recipe.name
    try:
        run = make(recipe, project, notify, shared(remote) if remote else None)
        goal = recipe.config["goal"]
        planned = run.ancestors(goal)
        hold = Hold(recipe, project, accept)
        hold.check()
        finish = _finish(run, recipe, project, lock)
        if not run.run(goal):
            assert isinstance(run.error, AnfbuildError)
            raise run.error
        key = run.goal_key(goal)
        assert key is not None, "the goal was reached"
        target = folder or builds / key[:12]
        exported = export(run, recipe, key, target, started, hold, Store(store_root(project)))
        outcome = finish(exported)
        breaks_lock = lock == "--locked" and outcome.error is not exported.error
        if latest and goal == "report" and exported.folder is not None and not breaks_lock:
            point(builds / "latest", exported.folder.name)
        return outcome
    except (AnfbuildError, OSError) as error:
        failed = next((event.step for event in run.events if event.kind == "failed"), None) if run else None
        known = error if isinstance(error, AnfbuildError) else _unwritten(error, folder or builds)
        told = located(known, recipe, part_of(failed or ""))
        told.__cause__ = error
        steps = steps_of(run) if run else ()
        return Outcome(recipe.name, told.exit_code, steps=steps, error=told, planned=planned, failed=failed)
    except KeyboardInterrupt:
        if run is not None:
            run.close(wait=False)
        raise
    finally:
        if run is not None:
            run.close(wait=not interruption.noted())


def _finish(run: Build, recipe: Recipe, project: Path, lock: str | None) -> Callable[[Outcome], Outcome]:
    """Check what is asked for against the lock; what is returned does so, or writes it, with a finished build."""
    if lock is None:
        return lambda outcome: outcome
    from anfbuild.cli import lock as locks

    store, name = Store(store_root(project)), locks.entry_name(recipe)
    there = locks.load(recipe.name, project)
    entry = locks.require(there, recipe) if lock == "--locked" else None
    if entry is not None:
        locks.check_asked(entry, there, run, recipe)

    def finish(outcome: Outcome) -> Outcome:
        if outcome.error is not None or outcome.folder is None:
            return outcome
        found = locks.made(run, recipe, outcome.folder, outcome.files, store)
        try:
            if entry is not None:
                locks.check_made(entry, found, there, name)
            else:
                with store.lock(f"lock-of-{recipe.name}"):
                    locks.save(locks.load(recipe.name, project), name, found)
        except AnfbuildError as error:
            if entry is not None:
                (outcome.folder / f"{recipe.name}.anf").unlink(missing_ok=True)  # as after a missed gate
            return dataclasses.replace(outcome, exit_code=error.exit_code, error=error)
        return outcome

    return finish


def _unwritten(error: OSError, folder: Path) -> StepError:
    return StepError(
        f"the build's files cannot be written: {error.strerror or error}",
        where=str(error.filename2 or error.filename or folder),
        remedy="All steps are finished and kept: make the place writable and run again.",
    )


def make(recipe: Recipe, project: Path, notify: Callable[[Event], None], remote: Shared | None = None) -> Build:
    """The graph of a recipe over the project's store and `remote`, checked, nothing run yet.

    Raises RecipeError, VersionError.
    """
    from anfbuild.qnn.availability import compiler
    from anfbuild.steps import GRAPH, JOINT

    store = Store(store_root(project))
    gates = recipe.config["gates"]
    found = {"host": {"versions": check(recipe.config), **compiler()}, "diagnosis": {"agreement_lsb": agreed(gates)}}
    parts = {
        name: Part(
            {**config, **found, "diagnosis": {"agreement_lsb": agreed(gates, config["gates"])}}, f"components.{name}."
        )
        for name, config in recipe.components.items()
    }
    private = {step for name, config in recipe.components.items() for step in _private(config, f"[{name}]")}
    return Build(
        recipe.name,
        GRAPH,
        {**recipe.config, **found},
        Cache(store, remote),
        project=project,
        code=code_index(store.memo_file),
        notify=notify,
        private=private if parts else _private(recipe.config),
        host=host,
        parts=parts,
        joint=JOINT,
    )


def _private(config: Mapping[str, Any], instance: str = "") -> set[str]:
    """The steps that make what must not leave this machine."""
    steps = (
        *(("fetch",) if config["source"]["private"] else ()),
        *(("assets", "dataset") if config["dataset"]["private"] else ()),
    )
    return {f"{step}{instance}" for step in steps}


@functools.cache
def code_index(memo: Path) -> CodeIndex:
    """Our code and what was worked out about files, for all builds of this process that use the memo."""
    return CodeIndex(PACKAGE.name, PACKAGE, Memo(memo))


def store_root(project: Path) -> Path:
    """$ANFBUILD_CACHE, or artifacts/store in the project."""
    given = os.environ.get("ANFBUILD_CACHE")
    return (at_home(given) if given else project / "artifacts" / "store").absolute()


def print_event(event: Event, console: Console) -> None:
    """Say in a line what a step is at."""
    hit = "cached (remote)" if event.origin == "remote" else "cached"
    words = {"wait": "waiting for another build", "start": "...", "hit": hit, "failed": "FAILED"}
    if event.received is not None:
        end = _amount(event.received, event.total)
    else:
        end = f"{event.seconds:.1f} s" if event.seconds is not None else words[event.kind]
    console.print(f"{event.step:<10} {end}")


def _amount(received: int, total: int | None) -> str:
    """How far a download is."""
    if not total:
        return f"{received / 1e6:.1f} MB"
    return f"{received / 1e6:.1f} of {total / 1e6:.1f} MB ({received * 100 // total} %)"
