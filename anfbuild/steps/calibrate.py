"""calibrate: one streaming pass over the samples gives statistics that every range estimator can use."""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json
from anfbuild.steps.samples import read_feeds, read_task


@dataclasses.dataclass(frozen=True)
class Calibrate:
    """How a sample becomes the model's input."""

    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: str = at("task.kind", plugin=plugins.TASKS)


@step(needs=("condition", "convert/vocabulary", "dataset/calibration"), config=Calibrate)
def calibrate(job: Job[Calibrate]) -> None:
    """Run the float model over the calibration samples and gather statistics."""
    from anfbuild.graph import load
    from anfbuild.quantization.statistics import collect

    task = read_task(job.config.task, job.inputs["convert/vocabulary"])
    statistics = collect(
        load(job.inputs["condition"] / "model.onnx"),
        (
            (sample.name, feeds)
            for sample, feeds in read_feeds(job.inputs["dataset/calibration"], task, job.config.inputs)
        ),
    )
    statistics.save(job.output / "statistics.npz")
    write_json(job.output / "calibrate.json", {"samples": statistics.samples, "tensors": len(statistics.tensors)})
