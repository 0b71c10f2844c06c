"""What a build made, laid out in its folder: the files of its goal, how it ran, and the verdicts on them."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.atomic import replacing
from anfbuild.cli.contract import Hold, Judged
from anfbuild.cli.disagreement import Diagnosed, below, diagnosed
from anfbuild.cli.findings import linted
from anfbuild.cli.host import system
from anfbuild.cli.outcome import Outcome
from anfbuild.engine.instances import part_of
from anfbuild.engine.run import Build
from anfbuild.engine.store import Store
from anfbuild.errors import GateError, StepError
from anfbuild.recipe import Recipe

EXPORTS = (
    ("report", "results.json"),
    ("report", "report.html"),
    ("quantize", "encodings.json"),
    ("place", "placement.csv"),
)
"""(step, its file); one that the step did not leave is passed over. The files of a component are in its own folder."""


def export(
    run: Build, recipe: Recipe, key: str, target: Path, started: tuple[float, float], hold: Hold, store: Store
) -> Outcome:
    """Lay a build that reached its goal out in the folder `target`, and judge it by its gates and its contract.

    `key` is the goal's; `started` is when the build was begun, in seconds of wall time and of the process. Raises what
    the step `lint` raises, StepError where a contract cannot be written, OSError where a file cannot.
    """
    goal = recipe.config["goal"]
    target.mkdir(parents=True, exist_ok=True)
    results, files = _export_report(run, target) if goal == "report" else (None, _export_goal(run, goal, target))
    found = linted(run, goal, target)
    files += [file for file in found if file not in files]
    judged, error = None, None
    if results is not None:
        missed = [gate for gate in results["gates"] if gate["passed"] is False]
        judged = hold.judge(target, results, store, sound=not missed)
        told = diagnosed(run, results, missed, target)
        results, files = told.results, [*files, *told.files]
        error = _missed(missed, judged, told, target)
        files += _export_package(run, target / f"{recipe.name}.anf", wanted=error is None)
    steps = steps_of(run)
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


def _export_report(run: Build, target: Path) -> tuple[dict[str, Any], list[str]]:
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


def _export_goal(run: Build, goal: str, target: Path) -> list[str]:
    """The names of the files of a goal that is no report."""
    files = []
    for member in run.members(goal):
        for file in run.result(member).files:
            files.append(f"{run.step_name(member)}/{below(part_of(member), file)}")
            run.export(member, file, target / files[-1])
    return files


def steps_of(run: Build) -> list[dict[str, Any]]:
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
        "host": system(),
        "source": "measured_host",
    }
    with replacing(target / "run.json") as partial:
        partial.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def point(link: Path, name: str) -> None:
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
