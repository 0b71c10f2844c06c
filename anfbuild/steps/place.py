"""place: where each node of the source model runs, and why: the compiler's verdict joined with the rules.

A step of its own, since rules are edited often: nothing but the report is behind it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json

if TYPE_CHECKING:
    from anfbuild.placement import Piece


@dataclasses.dataclass(frozen=True)
class Place:
    """What the rules judge the source model for, and what of it is built."""

    soc: str = at("target.soc")
    soc_model: int = at("target.soc_model")
    vtcm_mb: int = at("target.vtcm_mb")
    scheme: str = at("quantization.scheme")
    shapes: dict[str, list[int]] = at("model.inputs.*.shape")
    outputs: list[str] | None = at("model.outputs")


@step(needs=("convert", "quantize", "prepare", "simulate"), config=Place)
def place(job: Job[Place]) -> None:
    """Join verdicts, provenance and rules into the placement table."""
    from anfbuild import placement
    from anfbuild.graph import load
    from anfbuild.graph.constraints import inspect
    from anfbuild.graph.model import parse
    from anfbuild.graph.provenance import labels
    from anfbuild.qnn.compiled import Verdict
    from anfbuild.steps.aim import aim_for

    prepared, converted, simulated = (
        read_json(job.inputs[name] / f"{name}.json") for name in ("prepare", "convert", "simulate")
    )
    if not prepared["available"]:
        write_json(job.output / "place.json", {"available": False, "reason": prepared["reason"]})
        return
    config = job.config
    source = parse(job.inputs["convert"] / "source" / "model.onnx")
    aim = aim_for(config.soc_model, config.scheme, source, soc=config.soc, vtcm_mb=config.vtcm_mb)
    found = placement.pieces(
        load(job.inputs["quantize"] / "model.onnx"), [Verdict(**row) for row in prepared["verdicts"]]
    )
    rows = placement.join(
        [(name, node.op_type) for name, node in zip(labels(source.graph), source.graph.node, strict=True)],
        found,
        converted["provenance"],
        inspect(source, aim, config.shapes, config.outputs).placement,
        _costs(simulated, found),
    )
    placement.write_csv(rows, job.output / "placement.csv")
    figures = placement.summary(rows, found, prepared["partitions"], simulated["latency_ms"])
    write_json(job.output / "place.json", {"available": True, **figures})


def _costs(simulated: dict[str, Any], pieces: dict[str, Piece]) -> dict[str, float]:
    """Node of the QDQ model -> its share of the time that is predicted for the HTP, in ms; of nodes there alone."""
    whole = simulated["latency_ms"].get("htp")
    costs = {
        node["name"]: node["ms"]
        for node in simulated.get("nodes", ())
        if node["name"] in pieces and pieces[node["name"]].verdict.unit == "HTP"
    }
    total = math.fsum(costs.values())
    if whole is None or not total:
        return {}
    return {name: round(ms / total * whole, 6) for name, ms in costs.items()}
