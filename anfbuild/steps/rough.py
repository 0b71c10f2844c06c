"""rough: the clean model with made-up encodings, for its cost alone."""

from __future__ import annotations

import dataclasses

from anfbuild.engine.step import Job, at, step


@dataclasses.dataclass(frozen=True)
class Rough:
    """The scheme; fp16 leaves the model as it is."""

    scheme: str = at("quantization.scheme")


@step(needs=("outline",), config=Rough)
def rough(job: Job[Rough]) -> None:
    """Quantize the model without calibration."""
    from anfbuild.graph import load, save
    from anfbuild.quantization.rough import quantize_roughly

    model = load(job.inputs["outline"] / "model.onnx")
    if job.config.scheme != "fp16":
        model = quantize_roughly(model, job.config.scheme)
    save(model, job.output / "model.onnx")
