"""rough: the clean model with made-up encodings, for its cost alone."""

from __future__ import annotations

import dataclasses

from anfbuild.engine.step import Job, at, step


@dataclasses.dataclass(frozen=True)
class Rough:
    """The scheme; fp16 and as_is leave the model as it is."""

    scheme: str = at("quantization.scheme")


@step(needs=("outline",), config=Rough)
def rough(job: Job[Rough]) -> None:
    """Quantize the model without calibration. StepError for a quantized model; with as_is, for a float one."""
    from anfbuild.graph import load, save
    from anfbuild.quantization import AS_IS, FP16
    from anfbuild.quantization.as_is import keep, refuse_quantized
    from anfbuild.quantization.rough import quantize_roughly

    model = load(job.inputs["outline"] / "model.onnx")
    if job.config.scheme == AS_IS:
        keep(model)
    else:
        refuse_quantized(model)
        if job.config.scheme != FP16:
            model = quantize_roughly(model, job.config.scheme)
    save(model, job.output / "model.onnx")
