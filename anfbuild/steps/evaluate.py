"""evaluate: the task's own metric on the float, the quantized and the emulated model, on the same samples.

Samples without ground truth are judged by the float model's answers.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json
from anfbuild.steps.options import task_options
from anfbuild.steps.outputs import read_outputs
from anfbuild.steps.samples import read_task


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """The task with its options."""

    kind: str = at("task.kind", plugin=plugins.TASKS)
    task: dict[str, Any] = at("task.*")


@step(
    needs=("baseline", "quantize", "emulate", "convert/vocabulary", "dataset/evaluation", "dataset/truth"),
    config=Evaluate,
)
def evaluate(job: Job[Evaluate]) -> None:
    """Score the float, quantized and emulated model with the task's metric."""
    from anfbuild.datasets import read
    from anfbuild.quantization.encodings import Encodings
    from anfbuild.tasks.compare import compare

    task = read_task(job.config.kind, job.inputs["convert/vocabulary"], task_options(job.config.task))
    encodings = Encodings.from_json(read_json(job.inputs["quantize"] / "encodings.json"))
    truths = read_json(job.inputs["dataset/truth"] / "truth.json")
    samples = [(sample.name, task.size(sample.content)) for sample in read(job.inputs["dataset/evaluation"])]
    answers = {
        unit: [
            task.decode(outputs, size)
            for outputs, (_, size) in zip(read_outputs(job.inputs["emulate"] / unit, encodings), samples, strict=False)
        ]
        for unit in ("cpu", "htp")  # the emulated samples are the first ones
    }
    compared = compare(
        task,
        truths=[truths[name] for name, _ in samples] if truths else None,
        float_answers=read_json(job.inputs["baseline"] / "baseline.json")["answers"],
        quantized_answers=answers["cpu"],
        emulated_answers=answers["htp"],
    )
    write_json(job.output / "evaluate.json", compared)
