"""The placement in figures: nodes, shares of the work and of the time, and who is off the HTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anfbuild.placement.pieces import Piece
from anfbuild.placement.rows import QDQ, UNITS, Row, share

NO_MACS = "the model has no multiplication"


def off_htp(rows: Sequence[Row]) -> list[Row]:
    """The nodes that work is left of, and that the HTP does not run."""
    return [row for row in rows if row.compute and row.unit != "HTP"]


def summary(
    rows: Sequence[Row], pieces: Mapping[str, Piece], partitions: int, latency_ms: Mapping[str, Any]
) -> dict[str, Any]:
    """The figures of the group `placement` of results.json, and `macs` {unit: multiply-accumulates}.

    Nodes are those of the source model that work is left of. Shares are fractions: of the multiply-accumulates of the
    pieces, and of the predicted time, `latency_ms` by unit. What cannot be had is None, and `reasons` says why, by the
    JSON pointer into the group.
    """
    counted = [row for row in rows if row.compute]
    nodes = {unit: sum(row.unit.lower() == unit for row in counted) for unit in UNITS}
    macs = dict.fromkeys(UNITS, 0)
    for piece in pieces.values():
        if piece.op_type not in QDQ and piece.verdict.unit.lower() in macs:
            macs[piece.verdict.unit.lower()] += piece.macs
    reasons: dict[str, str] = {}
    shares = {"macs": share(macs), "time": _time(nodes, latency_ms, reasons)}
    if shares["macs"]["htp"] is None:
        reasons["/share/macs"] = NO_MACS
    return {
        "nodes": len(counted),
        **nodes,
        "partitions": partitions,
        "share": shares,
        "time_source": latency_ms.get("source") if shares["time"]["htp"] is not None else None,
        "unlisted": [row.node for row in off_htp(rows)],
        "macs": macs,
        "reasons": reasons,
    }


def _time(nodes: Mapping[str, int], latency_ms: Mapping[str, Any], reasons: dict[str, str]) -> dict[str, float | None]:
    """The predicted time by unit. A unit without a node takes none; of one with nodes it must be known."""
    times = {unit: latency_ms.get(unit) if nodes[unit] else 0.0 for unit in UNITS}
    unknown = [unit for unit, ms in times.items() if ms is None]
    if unknown:
        why = latency_ms.get("reason") or "; ".join(
            f"what {nodes[unit]} node(s) on the {unit.upper()} take is not predicted" for unit in unknown
        )
        reasons["/share/time"] = reasons["/time_source"] = why
        return dict.fromkeys(UNITS)
    shares = share({unit: float(ms) for unit, ms in times.items() if ms is not None})
    if shares["htp"] is None:
        reasons["/share/time"] = reasons["/time_source"] = "nothing of the model takes time"
    return shares
