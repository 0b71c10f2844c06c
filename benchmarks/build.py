"""What anfbuild adds to the work that a build cannot do without: `python benchmarks/build.py [--size 960|480]`.

Prints Markdown tables: the overhead of a cold build, a build with nothing to do, a sweep over range estimators, and
loading a context binary against preparing the graph on the spot. About ten minutes on two quiet cores; all are wall
times but where CPU seconds are named, so that other work on the machine shows.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from parts import PLAIN, Parts, Workload, least
from project import BUILT, RECIPE, SIZE, Project, command, observation, step_seconds, table

from anfbuild.qnn.emulate import online_prepare_ms
from anfbuild.qnn.options import Options

ESTIMATORS = ("minmax", "mse", "percentile", "percentile_999")

SHARED = ("convert", "condition", "dataset", "baseline", "calibrate")
"""Steps that the points of a sweep over range estimators have in common."""

OUTSIDE = "start, recipe, store, exports"

CHECKOUT = Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class ColdBuild:
    """A build on a store that holds downloads alone, and its unavoidable parts, timed right after it."""

    steps: dict[str, float]
    """Step -> seconds; under OUTSIDE those of the command that no step accounts for."""
    parts: Parts

    @property
    def total(self) -> float:
        return sum(self.steps.values())

    @property
    def overhead(self) -> float:
        return self.total - self.parts.total

    @property
    def share(self) -> float:
        """Of the float passes; the target is 0.25 at the most."""
        return self.overhead / self.parts.float_passes


def cold_builds(base: Project, count: int, work: Path) -> tuple[list[ColdBuild], Project, Workload]:
    """Builds in fresh projects, each followed by its parts; also the last project, and what its parts are."""
    builds = []
    for number in range(count):
        project = base.fetched_copy(f"cold{number}")
        total = project.build().seconds
        steps = step_seconds(project.latest)
        workload = Workload(project, work / str(number))
        builds.append(ColdBuild({**steps, OUTSIDE: total - sum(steps.values())}, workload.measure()))
        if number + 1 < count:
            shutil.rmtree(project.folder)
    return builds, project, workload


def overhead_tables(builds: Sequence[ColdBuild]) -> str:
    steps = {step: min(build.steps[step] for build in builds) for step in builds[0].steps}
    best = ColdBuild(steps, least([build.parts for build in builds]))
    parts = best.parts
    plain = {
        "dataset": parts.synthesis,
        "calibrate": parts.calibration,
        "baseline": parts.baseline,
        "prepare": parts.compile,
        "emulate": parts.frame + parts.quantized,
    }
    rows = [
        [step, f"{seconds:.2f}", f"{plain.get(step, 0):.2f}", f"{seconds - plain.get(step, 0):+.2f}"]
        for step, seconds in steps.items()
    ]
    rows.append(["**cold build**", f"{best.total:.2f}", f"{parts.total:.2f}", f"{best.overhead:+.2f}"])
    shares = ", ".join(f"{build.share:.2f}" for build in builds)
    return (
        f"Overhead of a cold build, as a share of its float passes ({parts.float_passes:.2f} s): "
        f"**{best.share:.2f}** (target 0.25; single runs: {shares})\n\n"
        + table(["step", "s", "of it plain work, timed alone (s)", "anfbuild's own (s)"], rows)
        + f"\nEach by its least of {len(builds)} runs. Plain work: data synthesis, session.run of the float and "
        "the QDQ model on ready inputs,\na compile and an emulated frame as users of onnxruntime-qnn would write them. "
        "Downloads were in the store before.\n"
    )


def no_op_table(project: Project, folder: Path, runs: int = 7) -> str:
    config = folder / "config"
    shutil.copytree(CHECKOUT / "conf", config)
    recipe = config / "recipe" / f"{RECIPE}.yaml"
    recipe.parent.mkdir()
    text = (CHECKOUT / "recipes" / f"{RECIPE}.yaml").read_text(encoding="utf-8")
    recipe.write_text(f"# @package _global_\n{text}", encoding="utf-8")
    compose = [sys.executable, str(PLAIN / "compose.py"), str(config), *project.overrides]

    def reference() -> float:
        return command(compose, folder).cpu_seconds

    def nothing_to_do() -> float:
        return project.build().cpu_seconds

    ours, theirs = alternate(nothing_to_do, reference, runs)
    return table(
        ["CPU seconds, median of 7", "s", "ratio", "target"],
        [
            ["build with nothing to do", f"{ours:.3f}", f"**{ours / theirs:.2f}**", "1.30"],
            ["compose the recipe with Hydra, import doit", f"{theirs:.3f}", "1", ""],
        ],
    )


def alternate(one: Callable[[], float], other: Callable[[], float], runs: int) -> tuple[float, float]:
    """Medians of runs in turn, after one of each that does not count."""
    pairs = [(one(), other()) for _ in range(runs + 1)][1:]
    first, second = zip(*pairs, strict=True)
    return median(first), median(second)


def sweep_table(base: Project, before: Parts, workload: Workload) -> str:
    project = base.fetched_copy("sweep")
    total = command(
        [sys.executable, "-m", "anfbuild", "-m", *project.overrides, f"calibration={','.join(ESTIMATORS)}"],
        project.folder,
        allowed=BUILT,
    ).seconds
    after = workload.measure()
    (results,) = (project.folder / "artifacts" / "sweeps").glob("*/results.json")
    jobs = json.loads(results.read_text(encoding="utf-8"))["jobs"]
    if len(jobs) != len(ESTIMATORS) or any(job["error"] and job["exit_code"] not in BUILT for job in jobs):
        raise SystemExit(f"a job of the sweep failed: see {results}")
    first = step_seconds(results.parent / jobs[0]["folder"])
    shared = sum(first[step] for step in SHARED)
    point = (before.per_point + after.per_point) / 2
    bound = shared + len(jobs) * point
    return (
        table(
            [f"sweep over {len(jobs)} range estimators", "s", "ratio", "target"],
            [
                ["anfbuild", f"{total:.1f}", f"**{total / bound:.2f}**", "1.15"],
                ["shared steps once, plain work per point", f"{bound:.1f}", "1", ""],
            ],
        )
        + f"\nShared: {', '.join(SHARED)}: {shared:.1f} s. Per point: plain compile, emulated frame, QDQ passes: "
        f"{point:.1f} s.\n"
    )


def load_table(project: Project, workload: Workload) -> str:
    target = project.recipe().config["target"]
    options = Options(soc_model=target["soc_model"], arch=target["arch"], vtcm_mb=target["vtcm_mb"])
    partitions = json.loads((project.latest / "results.json").read_text(encoding="utf-8"))["placement"]["partitions"]
    online = median(online_prepare_ms(workload.qdq, options, partitions=partitions) for _ in range(3))
    load = observation(project.latest, "load_ms")
    return table(
        ["time to a session on this host", "ms", "ratio"],
        [
            ["from the context binary", f"{load:.0f}", "1"],
            ["from the QDQ model, prepared on the spot", f"{online:.0f}", f"**{online / load:.0f}**"],
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, choices=(480, 960), default=SIZE)
    parser.add_argument("--repeats", type=int, default=3, help="cold builds; each step and part by its least")
    parser.add_argument("--only", choices=("cold", "noop", "sweep", "load"), nargs="+", help="tables to make")
    arguments = parser.parse_args()
    wanted = arguments.only or ["cold", "noop", "sweep", "load"]
    with tempfile.TemporaryDirectory(prefix="anfbuild-benchmark-") as name:
        root = Path(name).resolve()
        base = Project(root / "fetched", arguments.size)
        base.folder.mkdir()
        for goal in ("fetch", "assets"):
            base.build(f"goal={goal}")
        builds, project, workload = cold_builds(base, arguments.repeats if "cold" in wanted else 1, root / "work")
        if "cold" in wanted:
            print(overhead_tables(builds), flush=True)
        if "noop" in wanted:
            print(no_op_table(project, root), flush=True)
        if "sweep" in wanted:
            print(sweep_table(base, builds[-1].parts, workload), flush=True)
        if "load" in wanted:
            print(load_table(project, workload), flush=True)


if __name__ == "__main__":
    main()
