"""place: where each node of the source model runs, and why: the compiler's verdict joined with the rules.

A step of its own, since rules are edited often: nothing but the report is behind it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from anfbuild.engine.step import Job, step
from anfbuild.steps.aim import Judged, judge
from anfbuild.steps.files import read_json, write_json

if TYPE_CHECKING:
    from anfbuild.placement import Piece


@step(needs=("convert", "quantize", "prepare", "simulate"), config=Judged)
def place(job: Job[Judged]) -> None:
    """Join verdicts, provenance and rules into the placement table."""
    from anfbuild import placement
    from anfbuild.graph import load
    from anfbuild.graph.provenance import labels
    from anfbuild.qnn.compiled import Verdict

    prepared, converted, simulated = (
        read_json(job.inputs[name] / f"{name}.json") for name in ("prepare", "convert", "simulate")
    )
    if not prepared["available"]:
        write_json(job.output / "place.json", {"available": False, "reason": prepared["reason"]})
        return
    source, _, inspection = judge(job.config, job.inputs["convert"])
    found = placement.pieces(
        load(job.inputs["quantize"] / "model.onnx"), [Verdict(**row) for row in prepared["verdicts"]]
    )
    rows = placement.join(
        [(name, node.op_type) for name, node in zip(labels(source.graph), source.graph.node, strict=True)],
        found,
        converted["provenance"],
        inspection.placement,
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
