"""quantize: statistics become encodings, and the float model a QDQ model."""

from __future__ import annotations

import dataclasses

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Quantize:
    """How many bits, and where the ranges end."""

    scheme: str = at("quantization.scheme")
    estimator: str = at("calibration.estimator", plugin=plugins.ESTIMATORS)
    percentile: float = at("calibration.percentile")


@step(needs=("condition", "calibrate"), config=Quantize)
def quantize(job: Job[Quantize]) -> None:
    """Turn statistics into encodings and write the QDQ model."""
    from anfbuild.graph import load, save
    from anfbuild.quantization.quantize import quantize as make_qdq
    from anfbuild.quantization.statistics import Statistics

    model, encodings = make_qdq(
        load(job.inputs["condition"] / "model.onnx"),
        Statistics.load(job.inputs["calibrate"] / "statistics.npz"),
        scheme=job.config.scheme,
        estimator=job.config.estimator,
        percentile=job.config.percentile,
    )
    save(model, job.output / "model.onnx")
    write_json(job.output / "encodings.json", encodings.to_json())
