"""What a sweep costs and what workers gain: `python benchmarks/engine_sweep.py [--ray] [--only noop|scaling]`.

A sweep of a project of 50 recipes with nothing to do, in CPU seconds of the process and its children; and 8 jobs that
are bound to one core each, by one worker and by two. Needs `pip install 'anfbuild[joblib]'`, with `--ray` also
`'anfbuild[ray]'`. About five minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from project import RECIPE, Project, command, table

SIZE = 160
RECIPES = 50
ESTIMATORS = ("mse", "minmax", "percentile")
BASE = f"""\
defaults:
  - override /source: ppocr_det
  - override /dataset: synthetic_text
  - override /task: text_detection
  - _self_
model:
  inputs: {{x: {{shape: [1, 3, {SIZE}, {SIZE}], channels: BGR, scale: 0.00392156862745098}}}}
  outputs: [sigmoid_0.tmp_0]
dataset: {{size: {SIZE}, samples: 2}}
evaluation: {{samples: 2}}
gates: {{accuracy_drop: {{max: 1.0}}, agreement_lsb: {{max: 255}}}}
"""
"""The project's own recipe of the name that ours has: the other 49 build on it."""

JOBS = 8
IMAGES = (f"+recipe={RECIPE}", "goal=dataset", "dataset.size=320", "dataset.samples=240", "evaluation.samples=1")
"""A build of made images: work in one thread, and less of it than a real build takes."""
PLAIN = """\
from io import BytesIO
from PIL import Image
image = Image.effect_noise((960, 960), 80).convert("RGB")
for _ in range(100):
    image.rotate(3).resize((900, 900)).save(BytesIO(), "JPEG")
"""
"""The same kind of work, with nothing of anfbuild in it."""
ONE_THREAD = {"ANFBUILD_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
LAUNCHERS: Mapping[str, Mapping[int, Sequence[str]]] = {
    "joblib": {count: ("hydra/launcher=joblib", f"hydra.launcher.n_jobs={count}") for count in (1, 2)},
    "ray": {count: ("hydra/launcher=ray", f"+hydra.launcher.ray.init.num_cpus={count}") for count in (1, 2)},
}


def no_op_seconds(root: Path, repeats: int) -> float:
    """CPU seconds of a sweep over 50 recipes, all of which are built: the least of `repeats`."""
    project = Project(root / "recipes50", SIZE)
    (project.folder / "recipes").mkdir(parents=True)
    (project.folder / "recipes" / f"{RECIPE}.yaml").write_text(BASE, encoding="utf-8")
    for number in range(1, RECIPES):
        estimator = ESTIMATORS[number % len(ESTIMATORS)]
        (project.folder / "recipes" / f"r{number:02d}.yaml").write_text(
            f"defaults:\n  - /recipe/{RECIPE}\n  - override /calibration: {estimator}\n  - _self_\n"
            f"gates: {{latency_ms: {{max: {100 + number}}}}}\n",
            encoding="utf-8",
        )
    sweep = [sys.executable, "-m", "anfbuild", "-m", f"+recipe=glob([{RECIPE},r*])"]  # without those of anfbuild
    command(sweep, project.folder)
    return min(command(sweep, project.folder).cpu_seconds for _ in range(repeats))


def speed_up(root: Path, launcher: str, repeats: int) -> float:
    """Wall seconds of the jobs by one worker over those by two, each the least of `repeats` runs in turn."""
    base = Project(root / "fetched", SIZE)
    if not base.folder.is_dir():
        base.folder.mkdir()
        command([sys.executable, "-m", "anfbuild", f"+recipe={RECIPE}", "goal=assets"], base.folder)
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for number in range(repeats):
        for count in seconds:
            project = base.fetched_copy(f"{launcher}{count}-{number}")
            words = ["-m", *IMAGES, f"dataset.seed=range(1,{JOBS + 1})", *LAUNCHERS[launcher][count]]
            cost = command([sys.executable, "-m", "anfbuild", *words], project.folder)
            seconds[count].append(cost.seconds)
            shutil.rmtree(project.folder)
    print(f"{launcher}: {seconds}", file=sys.stderr)
    return min(seconds[1]) / min(seconds[2])


def machine_gain(repeats: int) -> float:
    """What two processes with nothing in common gain over one after the other: all that a second worker can give."""
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(repeats):
        for count, found in seconds.items():
            started = time.perf_counter()
            processes = [subprocess.Popen([sys.executable, "-c", PLAIN]) for _ in range(count)]
            if any(process.wait() for process in processes):
                raise SystemExit("a plain process failed")
            found.append(time.perf_counter() - started)
    return 2 * min(seconds[1]) / min(seconds[2])


def rows(
    launchers: Sequence[str] = ("joblib",), repeats: int = 3, only: str | None = None
) -> list[tuple[str, str, str]]:
    """What, figure and target of each measurement."""
    found = []
    with tempfile.TemporaryDirectory(prefix="anfbuild-benchmark-") as name:
        root = Path(name).resolve()
        if only != "scaling":
            figure = f"{no_op_seconds(root, repeats):.1f}"
            found.append((f"a sweep of {RECIPES} recipes with nothing to do (CPU seconds)", figure, "≤ 5"))
        os.environ.update(ONE_THREAD)
        if only != "noop":
            found.append(("two plain processes over one after the other", f"{machine_gain(repeats):.2f}", "–"))
        for launcher in launchers if only != "noop" else ():
            what = f"{JOBS} jobs of one thread, 1 worker over 2 workers, {launcher} (wall time)"
            found.append((what, f"{speed_up(root, launcher, repeats):.2f}", "≥ 1.7"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ray", action="store_true", help="measure Ray's workers too")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=("noop", "scaling"))
    arguments = parser.parse_args()
    launchers = ("joblib", "ray") if arguments.ray else ("joblib",)
    print(table(("what", "figure", "target"), rows(launchers, arguments.repeats, arguments.only)))


if __name__ == "__main__":
    main()
