"""baseline: the float model's answers on the evaluation samples, once for all schemes, estimators and targets."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json
from anfbuild.steps.options import task_options
from anfbuild.steps.samples import read_feeds, read_task

if TYPE_CHECKING:
    import numpy as np


@dataclasses.dataclass(frozen=True)
class Baseline:
    """The task with its options, and how a sample becomes the model's input."""

    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    kind: str = at("task.kind", plugin=plugins.TASKS)
    task: dict[str, Any] = at("task.*")


@step(needs=("convert", "convert/vocabulary", "dataset/evaluation"), config=Baseline)
def baseline(job: Job[Baseline]) -> None:
    """Let the float model answer the evaluation samples."""
    from anfbuild.graph import run_each

    task = read_task(job.config.kind, job.inputs["convert/vocabulary"], task_options(job.config.task))
    sizes: list[tuple[int, int]] = []

    def feeds() -> Iterator[dict[str, np.ndarray]]:
        for sample, arrays in read_feeds(job.inputs["dataset/evaluation"], task, job.config.inputs):
            sizes.append(task.size(sample.content))
            yield arrays

    answers = [
        task.decode(outputs, size)
        for outputs, size in zip(run_each(job.inputs["convert"] / "model.onnx", feeds()), sizes, strict=False)
    ]
    write_json(job.output / "baseline.json", {"answers": answers})
