"""lower: the compiler says what the model becomes on the chip; nothing of the binary is kept."""

from __future__ import annotations

import dataclasses

from anfbuild.engine.step import Job, at, step
from anfbuild.errors import Unavailable
from anfbuild.steps.files import write_json

_SECONDS, _MEMORY_GB = 300.0, 10.0


@dataclasses.dataclass(frozen=True)
class Lower:
    """The chip to compile for."""

    scheme: str = at("quantization.scheme")
    soc_model: int = at("target.soc_model")
    arch: str = at("target.arch")
    vtcm_mb: int = at("target.vtcm_mb")


@step(needs=("rough",), config=Lower)
def lower(job: Job[Lower]) -> None:
    """Compile the model and read its features. Raises Unavailable where this host has no compile to read."""
    from anfbuild import qnn
    from anfbuild.qnn.compile import compile_context
    from anfbuild.qnn.features import summarise, work_by_name
    from anfbuild.quantization import FP16

    config = job.config
    options = qnn.Options(
        soc_model=config.soc_model, arch=config.arch, vtcm_mb=config.vtcm_mb, fp16=config.scheme == FP16
    )
    compiled = compile_context(
        (job.inputs["rough"] / "model.onnx").read_bytes(),
        options,
        job.scratch / "context",
        timeout_s=_SECONDS,
        memory_gb=_MEMORY_GB,
    )
    if compiled.operations is None:
        raise Unavailable("the compiler left no schematic on this host")
    off = [row.node for row in compiled.verdicts if row.unit == "CPU"]
    write_json(
        job.output / "lower.json",
        {
            "features": summarise(compiled.operations).to_json(),
            "operations": work_by_name(compiled.operations),
            "partitions": compiled.partitions,
            "cpu_nodes": [name for name in off if not name.endswith(("QuantizeLinear", "DequantizeLinear"))],
        },
    )
