"""evaluate: the task's own metric on the float, the quantized and the emulated model, on the same samples."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json
from anfbuild.steps.samples import read_feeds, split_task


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """The task with its options, and how a sample becomes the model's input."""

    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: dict[str, Any] = at("task.*")


@step(needs=("baseline", "quantize", "emulate", "dataset/evaluation"), config=Evaluate)
def evaluate(job: Job[Evaluate]) -> None:
    """Score the float, quantized and emulated model with the task's metric."""
    from anfbuild import graph, tasks
    from anfbuild.tasks.compare import compare

    task = tasks.get(*split_task(job.config.task))
    session = graph.Session(job.inputs["quantize"] / "model.onnx")
    emulated = _emulated(job.inputs["emulate"])
    truths, quantized_answers, emulated_answers = [], [], []
    for index, (sample, feeds) in enumerate(read_feeds(job.inputs["dataset/evaluation"], task, job.config.inputs)):
        size = sample.image.shape[:2]
        truths.append(sample.truth)
        quantized_answers.append(task.decode(session.run(feeds), size))
        if index < len(emulated):  # the emulated samples are the first of the evaluated ones
            emulated_answers.append(task.decode(emulated[index], size))
    float_answers = read_json(job.inputs["baseline"] / "baseline.json")["answers"]
    write_json(
        job.output / "evaluate.json",
        compare(task, truths, float_answers, quantized_answers, emulated_answers),
    )


def _emulated(folder: Path) -> list[dict[str, Any]]:
    """The emulator's outputs, sample by sample; none where this host has no emulator."""
    from anfbuild.qnn.arrays import read_arrays

    return [read_arrays(path) for path in sorted((folder / "outputs").glob("*.npz"))]
