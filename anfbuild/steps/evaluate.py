"""evaluate: the task's own metric on the float, the quantized and the emulated model, on the same samples."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json
from anfbuild.steps.samples import answer_samples, split_task


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """The task with its options, and how a sample becomes the model's input."""

    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: dict[str, Any] = at("task.*")


@step(needs=("baseline", "quantize", "emulate", "dataset/evaluation"), config=Evaluate)
def evaluate(job: Job[Evaluate]) -> None:
    """Score the float, quantized and emulated model with the task's metric."""
    from anfbuild import tasks
    from anfbuild.tasks.compare import compare

    task = tasks.get(*split_task(job.config.task))
    model = job.inputs["quantize"] / "model.onnx"
    answered = answer_samples(job.inputs["dataset/evaluation"], task, job.config.inputs, model)
    emulated = _emulated(job.inputs["emulate"])  # of the first of these samples
    compared = compare(
        task,
        truths=[sample.truth for sample in answered],
        float_answers=read_json(job.inputs["baseline"] / "baseline.json")["answers"],
        quantized_answers=[sample.answer for sample in answered],
        emulated_answers=[
            task.decode(outputs, sample.size) for outputs, sample in zip(emulated, answered, strict=False)
        ],
    )
    write_json(job.output / "evaluate.json", compared)


def _emulated(folder: Path) -> list[dict[str, Any]]:
    """The emulator's outputs, sample by sample; none where this host has no emulator."""
    from anfbuild.qnn.arrays import read_arrays

    return [read_arrays(path) for path in sorted((folder / "outputs").glob("*.npz"))]
