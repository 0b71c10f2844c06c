"""What the benchmarks share: projects in temporary folders, commands timed from outside, tables for the README."""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anfbuild.cli.build import make
from anfbuild.engine.run import Build
from anfbuild.recipe import Recipe, compose

RECIPE = "ocr_detect"

SIZE = 960
"""The side that the recipe itself asks for."""

BUILT = (0, 3)
"""Exit codes of a build that went to its end: a missed gate does not change what was built."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float
    """Wall time."""
    cpu_seconds: float
    """User and system time of the process and its own children."""


@dataclasses.dataclass(frozen=True)
class Project:
    """A folder to build in, with a store of its own."""

    folder: Path
    size: int
    """The model's input and the images: side in pixels."""

    @property
    def overrides(self) -> list[str]:
        sizes = [f"model.inputs.x.shape=[1,3,{self.size},{self.size}]", f"dataset.size={self.size}"]
        return [f"+recipe={RECIPE}", *(sizes if self.size != SIZE else [])]

    @property
    def latest(self) -> Path:
        return self.folder / "artifacts" / "builds" / RECIPE / "latest"

    def build(self, *words: str) -> Cost:
        """Run `anfbuild` on the recipe, with further words of the command line."""
        return command([sys.executable, "-m", "anfbuild", *self.overrides, *words], self.folder, allowed=BUILT)

    def fetched_copy(self, name: str) -> Project:
        """A project beside this one, whose store holds what this one's does: by intent, downloads and no more."""
        copy = Project(self.folder.parent / name, self.size)
        copy.folder.mkdir()
        shutil.copytree(self.folder / "artifacts" / "store", copy.folder / "artifacts" / "store")
        return copy

    def recipe(self) -> Recipe:
        return compose(self.overrides, self.folder)

    def graph(self) -> Build:
        """The task graph over this project's store, to export single files of steps from."""
        return make(self.recipe(), self.folder, lambda _: None)

    def export(self, step: str, folder: Path) -> Path:
        """The files that a step left, in `folder`/`step`."""
        graph = self.graph()
        for file in graph.result(step).files:
            path = folder / step / file
            path.parent.mkdir(parents=True, exist_ok=True)
            graph.export(step, file, path)
        return folder / step


def command(words: Sequence[str], folder: Path, *, allowed: Sequence[int] = (0,)) -> Cost:
    """Run a command to its end in `folder`, as a user's shell would; SystemExit with its output where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    process = subprocess.run(words, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode not in allowed:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}\n{process.stdout}{process.stderr}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(seconds, cpu)


def _environment() -> dict[str, str]:
    """The caller's, without what would move the store or keep Python from caching its bytecode, as pip does."""
    hidden = ("ANFBUILD_CACHE", "PYTHONDONTWRITEBYTECODE")
    return {key: value for key, value in os.environ.items() if key not in hidden}


def step_seconds(folder: Path) -> dict[str, float]:
    """Step -> seconds that it ran, from a build's run.json; hits are left out."""
    steps = json.loads((folder / "run.json").read_text(encoding="utf-8"))["steps"]
    return {step["step"]: step["seconds"] for step in steps if not step["hit"]}


def observation(folder: Path, name: str) -> float:
    """A figure that a step noted in a build's run.json."""
    steps: list[dict[str, Any]] = json.loads((folder / "run.json").read_text(encoding="utf-8"))["steps"]
    return next(float(step["observations"][name]) for step in steps if name in step["observations"])


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
