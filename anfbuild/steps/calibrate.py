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
    from anfbuild.quantization.as_is import is_quantized
    from anfbuild.quantization.statistics import Statistics, collect

    task = read_task(job.config.task, job.inputs["convert/vocabulary"])
    model = load(job.inputs["condition"] / "model.onnx")
    if is_quantized(model):  # it has encodings of its own, or none are made for it
        statistics = Statistics({}, 0)
    else:
        feeds = read_feeds(job.inputs["dataset/calibration"], task, job.config.inputs)
        statistics = collect(model, ((sample.name, arrays) for sample, arrays in feeds))
    statistics.save(job.output / "statistics.npz")
    write_json(job.output / "calibrate.json", {"samples": statistics.samples, "tensors": len(statistics.tensors)})
