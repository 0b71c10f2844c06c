"""baseline: the float model's answers on the evaluation samples, once for all schemes, estimators and targets."""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json
from anfbuild.steps.samples import answer_samples, split_task


@dataclasses.dataclass(frozen=True)
class Baseline:
    """The task with its options, and how a sample becomes the model's input."""

    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: dict[str, Any] = at("task.*")


@step(needs=("convert", "dataset/evaluation"), config=Baseline)
def baseline(job: Job[Baseline]) -> None:
    """Let the float model answer the evaluation samples."""
    from anfbuild import tasks

    task = tasks.get(*split_task(job.config.task))
    model = job.inputs["convert"] / "model.onnx"
    answered = answer_samples(job.inputs["dataset/evaluation"], task, job.config.inputs, model)
    write_json(job.output / "baseline.json", {"answers": [sample.answer for sample in answered]})
