"""prepare: the compiler turns the QDQ model into a context binary for the target, with its verdict on every node."""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.errors import StepError
from anfbuild.steps.files import read_json, write_json


@dataclasses.dataclass(frozen=True)
class Prepare:
    """The chip to compile for, and why this host cannot compile, if it cannot."""

    soc_model: int = at("target.soc_model")
    arch: str = at("target.arch")
    vtcm_mb: int = at("target.vtcm_mb")
    no_compiler: str | None = at("host.no_compiler")


@step(needs=("quantize", "plan"), config=Prepare)
def prepare(job: Job[Prepare]) -> None:
    """Compile the QDQ model to a context binary for the target."""
    from anfbuild import qnn
    from anfbuild.qnn.compile import compile_context
    from anfbuild.qnn.features import summarise

    _require_one_htp_block(read_json(job.inputs["plan"] / "plan.json"))
    if job.config.no_compiler is not None:
        write_json(job.output / "prepare.json", {"available": False, "reason": job.config.no_compiler})
        return
    options = qnn.Options(soc_model=job.config.soc_model, arch=job.config.arch, vtcm_mb=job.config.vtcm_mb)
    compiled = compile_context((job.inputs["quantize"] / "model.onnx").read_bytes(), options, job.output / "context")
    if not compiled.integer:
        raise StepError(
            f"the compiled graph computes on floating point ({compiled.float_tensors} tensors), not on integers",
            remedy="The quantized model lost its encodings on the way; look at encodings.json (goal=quantize).",
        )
    write_json(
        job.output / "prepare.json",
        {
            "available": True,
            **compiled.to_json(),
            "features": None if compiled.operations is None else summarise(compiled.operations).to_json(),
        },
    )


def _require_one_htp_block(plan: dict[str, Any]) -> None:
    units = [block["unit"] for block in plan["blocks"]]
    if units != ["HTP"]:
        raise StepError(f"the plan has blocks on {', '.join(units)}; one block on the HTP can be compiled")
