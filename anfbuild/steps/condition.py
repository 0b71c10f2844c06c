"""condition: float-equal rewrites that prepare a model for quantization."""

from __future__ import annotations

import dataclasses
import shutil

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Condition:
    """Which rewrites."""

    mask_clamp: float | None = at("condition.mask_clamp")
    equalize: bool = at("condition.equalize")


@step(needs=("convert",), config=Condition)
def condition(job: Job[Condition]) -> None:
    """Rewrite the float model for quantization, its results equal."""
    from anfbuild.graph import load, save
    from anfbuild.graph.conditioning import condition as rewrite

    model = load(job.inputs["convert"] / "model.onnx")
    done = rewrite(model, mask_clamp=job.config.mask_clamp, equalization=job.config.equalize)
    if done.rewrites:
        save(model, job.output / "model.onnx")
    else:
        for path in job.inputs["convert"].glob("model.onnx*"):  # a large model has its data beside it
            shutil.copyfile(path, job.output / path.name)
    write_json(job.output / "condition.json", dataclasses.asdict(done))
