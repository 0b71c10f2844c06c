"""plan: which unit runs what. The backend `htp` asks for one block, the whole model, on the HTP."""

from __future__ import annotations

import dataclasses

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Plan:
    """The units that may be used."""

    backend: str = at("backend.kind")


@step(needs=("quantize",), config=Plan)
def plan(job: Job[Plan]) -> None:
    """Assign the model's blocks to units."""
    from anfbuild.graph import interface, load

    ends = interface(load(job.inputs["quantize"] / "model.onnx"))
    block = {
        "name": "block_0",
        "unit": "HTP",
        "inputs": sorted(ends["inputs"]),
        "outputs": sorted(ends["outputs"]),
    }
    write_json(job.output / "plan.json", {"backend": job.config.backend, "blocks": [block]})
