"""lint: what the rules say of the source model, and where its nodes would run, before anything is calibrated.

Nothing needs it: it is planned where it is asked for, and with `goal=convert`.
"""

from __future__ import annotations

import dataclasses

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Lint:
    """What the rules judge the source model for, and what of it is built."""

    soc: str = at("target.soc")
    soc_model: int = at("target.soc_model")
    vtcm_mb: int = at("target.vtcm_mb")
    scheme: str = at("quantization.scheme")
    shapes: dict[str, list[int]] = at("model.inputs.*.shape")
    outputs: list[str] | None = at("model.outputs")


@step(needs=("convert",), config=Lint)
def lint(job: Job[Lint]) -> None:
    """Judge the source model's structure."""
    from anfbuild.graph.constraints import inspect
    from anfbuild.graph.model import parse
    from anfbuild.steps.aim import aim_for

    config = job.config
    source = parse(job.inputs["convert"] / "source" / "model.onnx")
    aim = aim_for(config.soc_model, config.scheme, source, soc=config.soc, vtcm_mb=config.vtcm_mb)
    found = inspect(source, aim, config.shapes, config.outputs)
    write_json(
        job.output / "lint.json",
        {
            "target": aim.target,
            "arch": aim.arch,
            "quantization": aim.precision.name,
            "findings": [finding.to_json() for finding in found.findings],
            "placement": [placed.to_json() for placed in found.placement],
            "source": "predicted",
        },
    )
