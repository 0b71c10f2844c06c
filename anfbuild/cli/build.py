"""One build: a composed recipe goes through the graph, and what it made is laid out under artifacts/."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anfbuild
from anfbuild.atomic import replacing
from anfbuild.cli import interruption
from anfbuild.cli.console import Console
from anfbuild.cli.contract import Hold, Judged
from anfbuild.cli.disagreement import Diagnosed, agreed, below, diagnosed
from anfbuild.cli.findings import linted, rows
from anfbuild.cli.located import located
from anfbuild.cli.preflight import check
from anfbuild.cli.remotes import shared
from anfbuild.cli.seam import describe
from anfbuild.engine.cache import Cache
from anfbuild.engine.code import CodeIndex
from anfbuild.engine.files import at_home
from anfbuild.engine.instances import Part, part_of
from anfbuild.engine.memo import Memo
from anfbuild.engine.run import Build, Event
from anfbuild.engine.store import Store
from anfbuild.errors import AnfbuildError, GateError, StepError
from anfbuild.recipe import Recipe

if TYPE_CHECKING:
    from anfbuild.engine.remote.settings import Settings
    from anfbuild.engine.remote.shared import Shared

PACKAGE = Path(anfbuild.__file__).parent

EXPORTS = (
    ("report", "results.json"),
    ("report", "report.html"),
    ("quantize", "encodings.json"),
    ("place", "placement.csv"),
)
"""(step, its file); one that the step did not leave is passed over. The files of a component are in its own folder."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one build. `error` is null where it went well; `results` where it did not get so far."""

    name: str
    exit_code: int = 0
    key: str | None = None
    folder: Path | None = None
    results: dict[str, Any] | None = None
    steps: Sequence[Mapping[str, Any]] = ()
    error: AnfbuildError | None = None
    planned: Sequence[str] = ()
    """The steps of the goal, each after what it needs."""
    failed: str | None = None
    """The step that broke."""
    files: Sequence[str] = ()
    """What was exported, as paths in `folder`. Something else may lie there too."""
    contract: Judged | None = None
    """What became of the placement contract; None where there is none."""
    lint: Sequence[Mapping[str, Any]] = ()
    """With `goal=convert`, what lint found, of each component."""

    @property
    def summary(self) -> list[tuple[str, str, str]]:
        """(label, value, source) rows for the terminal."""
        from anfbuild.report.summary import summary

        if self.results is None:
            return rows(self.lint, self.name)
        told = [self.contract.summary] if self.contract is not None and self.contract.told else []
        return [*summary(self.results), *told]

    def to_json(self) -> dict[str, Any]:
        """As one JSON document, for `--json`."""
        return {
            "recipe": self.name,
            "exit_code": self.exit_code,
            "key": self.key,
            "folder": None if self.folder is None else str(self.folder),
            "results": self.results,
            "steps": list(self.steps),
            "lint": list(self.lint),
            "contract": None if self.contract is None else self.contract.to_json(),
            "error": None if self.error is None else describe(self.error),
        }


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
    are in the outcome.
    KeyboardInterrupt passes.
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
        exported = _export(run, recipe, builds, folder, started, hold)
        outcome = finish(exported)
        breaks_lock = lock == "--locked" and outcome.error is not exported.error
        if latest and goal == "report" and exported.folder is not None and not breaks_lock:
            _point(builds / "latest", exported.folder.name)
        return outcome
    except (AnfbuildError, OSError) as error:
        failed = next((event.step for event in run.events if event.kind == "failed"), None) if run else None
        known = error if isinstance(error, AnfbuildError) else _unwritten(error, folder or builds)
        told = located(known, recipe, part_of(failed or ""))
        told.__cause__ = error
        steps = _steps(run) if run else ()
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


def host() -> dict[str, str]:
    """This machine, as far as it may matter to what is made on it. Imports numpy: for builds that ran a step."""
    from anfbuild.compat.cpu import cpu_class

    return {**_system(), "cpu_class": cpu_class()}


def _system() -> dict[str, str]:
    return {"system": platform.system(), "machine": platform.machine(), "python": platform.python_version()}


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


def _export(
    run: Build, recipe: Recipe, builds: Path, folder: Path | None, started: tuple[float, float], hold: Hold
) -> Outcome:
    goal = recipe.config["goal"]
    key = run.goal_key(goal)
    assert key is not None, "the goal was reached"
    target = folder or builds / key[:12]
    target.mkdir(parents=True, exist_ok=True)
    export = _export_report if goal == "report" else _export_goal
    results, files = export(run, recipe, target)
    found = linted(run, goal, target)
    files += [file for file in found if file not in files]
    judged, error = None, None
    if results is not None:
        missed = [gate for gate in results["gates"] if gate["passed"] is False]
        judged = hold.judge(target, results, Store(store_root(hold.project)), sound=not missed)
        told = diagnosed(run, results, missed, target)
        results, files = told.results, [*files, *told.files]
        error = _missed(missed, judged, told, target)
        files += _export_package(run, target / f"{recipe.name}.anf", wanted=error is None)
    steps = _steps(run)
    _write_run(steps, recipe, target, key, started)
    planned = run.ancestors(goal)
    code = error.exit_code if error else 0
    return Outcome(
        *(recipe.name, code, key, target, results, steps, error, planned),
        files=files,
        contract=judged,
        lint=[*found.values()],
    )


def _missed(
    gates: Sequence[Mapping[str, Any]], judged: Judged | None, diagnosis: Diagnosed, target: Path
) -> GateError | None:
    """What to tell of gates that are missed, and of nodes that the placement contract does not list."""
    told: list[str] = []
    remedies: list[str] = []
    if gates:
        from anfbuild.report.gates import gate_name

        names = ", ".join(f"{gate_name(g)} is {g['value']}, limit {g['direction']} {g['limit']}" for g in gates)
        told += [f"{len(gates)} gate(s) missed: {names}", *diagnosis.causes]
        remedies += diagnosis.remedies or ["Change the recipe, or its gates."]
    if judged is not None and judged.passed is False:
        told.append(judged.missed)
        remedies.append("Mend the model, or accept where its nodes run by building with --accept.")
    if not told:
        return None
    return GateError(
        "; ".join(told),
        where=str(target / "report.html"),
        remedy=" ".join(["No package was exported.", *remedies]),
    )


def _export_report(run: Build, _recipe: Recipe, target: Path) -> tuple[dict[str, Any], list[str]]:
    """results.json, and the names of the files."""
    files = []
    for step, file in EXPORTS:
        for member in run.members(step):
            if file in run.result(member).files:
                files.append(below(part_of(member), file))
                run.export(member, file, target / files[-1])
    results: dict[str, Any] = json.loads((target / "results.json").read_text(encoding="utf-8"))
    return results, files


def _export_package(run: Build, archive: Path, *, wanted: bool) -> list[str]:
    """The archive's name; none where it is not wanted, and then none is left of an earlier build either."""
    if wanted:
        run.export("package", "package.anf", archive)
    else:
        archive.unlink(missing_ok=True)
    return [archive.name] if wanted else []


def _export_goal(run: Build, recipe: Recipe, target: Path) -> tuple[None, list[str]]:
    """No results, and the names of the files."""
    files = []
    for member in run.members(recipe.config["goal"]):
        for file in run.result(member).files:
            files.append(f"{run.step_name(member)}/{below(part_of(member), file)}")
            run.export(member, file, target / files[-1])
    return None, files


def _steps(run: Build) -> list[dict[str, Any]]:
    """A line a step: whether it was a hit, whence (built, local, remote), how long it took now, and what was observed
    when it ran."""
    ended = [event for event in run.events if event.kind in ("hit", "done")]
    return [
        {
            "step": event.step,
            "key": event.key,
            "hit": event.kind == "hit",
            "source": event.origin or "built",
            "seconds": None if event.seconds is None else round(event.seconds, 3),
            "observations": run.observations(event.key),
        }
        for event in ended
    ]


def _write_run(
    steps: Sequence[Mapping[str, Any]], recipe: Recipe, target: Path, key: str, started: tuple[float, float]
) -> None:
    document = {
        "recipe": recipe.name,
        "key": key,
        "steps": steps,
        "seconds": round(time.perf_counter() - started[0], 3),
        "cpu_seconds": round(time.process_time() - started[1], 3),
        "host": _system(),
        "source": "measured_host",
    }
    with replacing(target / "run.json") as partial:
        partial.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _point(link: Path, name: str) -> None:
    """Make `link` point to the folder `name` beside it, atomically; where links are not allowed, a file names it."""
    if link.is_dir() and not link.is_symlink():
        raise StepError(
            f"a folder is in the way of the link {link.name!r} to the newest build",
            where=str(link),
            remedy=f"Move that folder away and run again; the files of this build are in {link.parent / name}.",
        )
    with replacing(link) as partial:
        try:
            partial.symlink_to(name, target_is_directory=True)
        except OSError:
            partial.write_text(name, encoding="utf-8")
