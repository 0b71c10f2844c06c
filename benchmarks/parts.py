"""The work that any build of a recipe has to do, each part timed alone. The rest is anfbuild's own."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from project import Project, command

from anfbuild import datasets, graph, tasks
from anfbuild.steps.samples import read_feeds

PLAIN = Path(__file__).parent / "plain"


@dataclasses.dataclass(frozen=True)
class Parts:
    """Seconds of wall time."""

    synthesis: float
    calibration: float
    """Float passes over the calibration samples."""
    baseline: float
    """Float passes over the evaluation samples."""
    compile: float
    frame: float
    """A process that loads the context binary and emulates one frame."""
    quantized: float
    """QDQ passes over the evaluation samples, on the CPU."""

    @property
    def float_passes(self) -> float:
        return self.calibration + self.baseline

    @property
    def per_point(self) -> float:
        """What each point of a sweep over range estimators has to do again."""
        return self.compile + self.frame + self.quantized

    @property
    def total(self) -> float:
        return self.synthesis + self.float_passes + self.per_point


def load_feeds(folder: Path, config: dict[str, Any]) -> list[dict[str, np.ndarray]]:
    """What a model is fed for the samples in `folder`, all at once."""
    task = tasks.get(config["task"]["kind"], {})
    return [feeds for _, feeds in read_feeds(folder, task, config["model"]["inputs"])]


def least(measured: Sequence[Parts]) -> Parts:
    """Each part by the run in which it took least: what else a machine does only ever adds to it."""
    return Parts(*(min(values) for values in zip(*map(dataclasses.astuple, measured), strict=True)))


class Workload:
    """The recipe's models and data, taken from a finished build, and the parts that are timed on them."""

    def __init__(self, project: Project, folder: Path) -> None:
        self._config = project.recipe().config
        self._folder = folder
        self._assets = project.export("assets", folder)
        self._float = project.export("convert", folder) / "model.onnx"
        self._qdq = project.export("quantize", folder) / "model.onnx"
        self._context = project.export("prepare", folder) / "context" / "model.onnx"
        samples = project.export("dataset", folder)
        self._calibration, self._evaluation = (load_feeds(samples / split, self._config) for split in datasets.SPLITS)
        self.feeds_file = folder / "feeds.npz"
        np.savez(self.feeds_file, allow_pickle=False, **self._evaluation[0])

    @property
    def qdq(self) -> bytes:
        return self._qdq.read_bytes()

    def measure(self) -> Parts:
        (quantized,) = self._passes(self._qdq, self._evaluation)
        calibration, baseline = self._passes(self._float, self._calibration, self._evaluation)
        return Parts(
            synthesis=_seconds(self._synthesise),
            calibration=calibration,
            baseline=baseline,
            compile=self._compile(),
            frame=self._script("frame.py", self._context, self.feeds_file),
            quantized=quantized,
        )

    def _passes(self, model: Path, *series: Sequence[dict[str, np.ndarray]]) -> list[float]:
        """Seconds of the runs alone, for each series of feeds."""
        session = graph.Session(model)
        laps = [time.perf_counter()]
        for feeds in series:
            for feed in feeds:
                session.run(feed)
            laps.append(time.perf_counter())
        return [after - before for before, after in itertools.pairwise(laps)]

    def _synthesise(self) -> None:
        data = self._config["dataset"]
        numbers = (data["samples"], self._config["evaluation"]["samples"])
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            for split, samples in zip(datasets.SPLITS, numbers, strict=True):
                datasets.write(
                    data["kind"],
                    folder=Path(name) / split,
                    split=split,
                    samples=samples,
                    seed=data["seed"],
                    size=data["size"],
                    assets=self._assets,
                )

    def _compile(self) -> float:
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            return self._script("compile.py", self._qdq, Path(name) / "model.onnx")

    def _script(self, name: str, *paths: Path) -> float:
        target = self._config["target"]
        words = [sys.executable, str(PLAIN / name), *map(str, paths), str(target["soc_model"]), str(target["vtcm_mb"])]
        return command(words, self._folder).seconds


def _seconds(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
