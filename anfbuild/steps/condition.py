"""condition: the place of float-equal rewrites that prepare a model for quantization. None is offered so far."""

from __future__ import annotations

import dataclasses
import shutil

from anfbuild.engine.step import Job, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Condition:
    """No rewrite is offered yet, so there is nothing to choose."""


@step(needs=("convert",), config=Condition)
def condition(job: Job[Condition]) -> None:
    """Hand the float model on to quantization, its results equal."""
    for path in job.inputs["convert"].glob("model.onnx*"):  # a large model has its data beside it
        shutil.copyfile(path, job.output / path.name)
    write_json(job.output / "condition.json", {"rewrites": []})
