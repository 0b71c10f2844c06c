"""The verdicts on the nodes of the QDQ model, brought back to the nodes of the source model."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anfbuild.placement import reasons
from anfbuild.placement.pieces import Piece
from anfbuild.placement.rows import QDQ, Row, Unit

if TYPE_CHECKING:
    from anfbuild.graph.constraints import Placed

_SHOWN = 8
"""Nodes that a row names of those that its node became: a recurrent layer becomes thousands."""
_PUT_IN = "put in by the build"
_ENDS = {
    "QuantizeLinear": "it turns the model's float input into integers: on the CPU by design",
    "DequantizeLinear": "it turns the integers of the HTP into the model's float output: on the CPU by design",
}


@dataclass
class _Share:
    """What the pieces of a source node come to."""

    pieces: list[Piece] = field(default_factory=list)
    macs: int = 0
    ms: float | None = None


def join(
    source: Sequence[tuple[str, str]],
    pieces: Mapping[str, Piece],
    provenance: Mapping[str, Sequence[str]],
    predicted: Sequence[Placed],
    costs: Mapping[str, float],
) -> list[Row]:
    """A row for each node of `source` ((name, op type), in its order), then one for each node that has no source node:
    what the build put in, and the Q and DQ at the model's ends. The other Q and DQ are edges, not nodes.

    `provenance`: piece -> the source nodes whose work it does, where that is not the one of its own name. `predicted`:
    what the rules say. `costs`: piece -> ms, of those that have one.

    A node is on the CPU where any part of its work is. MACs and time of a piece count for one of its source nodes, that
    which multiplies if any does; of a piece that has none, for its own row. So sums over rows are sums over pieces.
    """
    known = {name for name, _ in source}
    shares: dict[str, _Share] = defaultdict(_Share)
    op_types = dict(source)
    rules = {placed.node: placed for placed in predicted}
    names = {}
    for name, piece in pieces.items():
        sources = [origin for origin in provenance.get(name, [name]) if origin in known]
        if not sources and piece.op_type in QDQ and not piece.end:
            continue
        names[name] = _owner(name, sources, op_types, rules)
        for origin in sources or [name]:
            shares[origin].pieces.append(piece)
        owner = shares[names[name]]
        owner.macs += piece.macs
        if name in costs:
            owner.ms = math.fsum([owner.ms or 0.0, costs[name]])

    def named(name: str) -> str:
        return names.get(name, name)

    rows = [_row(name, op_type, shares[name], pieces, rules.get(name), named) for name, op_type in source]
    added = [name for name in shares if name not in known]
    rows += [_added(shares[name], pieces, named) for name in added if not pieces[name].end]
    return rows + [_end(pieces[name]) for name in added if pieces[name].end]


def _owner(name: str, sources: Sequence[str], op_types: Mapping[str, str], rules: Mapping[str, Placed]) -> str:
    """The source node that a piece is called by: one that multiplies, else that of its name, else the first that is no
    constant; the piece itself where it has none."""
    from anfbuild.graph.constraints.operators import HEAVY

    working = [origin for origin in sources if origin not in rules or rules[origin].unit not in ("folded", "removed")]
    heavy = [origin for origin in working if op_types[origin] in HEAVY]
    own = [name] if name in sources else []
    return next(iter([*heavy, *own, *working, *sources, name]))


def _row(
    name: str,
    op_type: str,
    share: _Share,
    pieces: Mapping[str, Piece],
    predicted: Placed | None,
    named: reasons.Names,
) -> Row:
    own = share.pieces
    gone = predicted is not None and predicted.unit in ("folded", "removed")
    if predicted is not None and gone and all(piece.node != name for piece in own):
        # What became a constant is counted for whoever reads the constant: that is not where the node runs.
        unit: Unit = "folded" if predicted.unit == "folded" else "removed"
        return Row(name, op_type, unit, share.macs, share.ms, "", predicted.reason, "")
    if not own:
        return Row(name, op_type, "removed", share.macs, share.ms, "", "the passes left nothing of it", "")
    unit = _unit(own)
    if unit == "CPU":
        reason = reasons.on_cpu(op_type, own, pieces, predicted, named)
    elif unit == "folded":
        reason = "it computes a constant"
    else:
        reason = "; ".join(filter(None, _on_htp(name, own, pieces, predicted, named)))
    return Row(name, op_type, unit, share.macs, share.ms, _became(own), reason, _compiler(own, unit))


def _unit(own: Sequence[Piece]) -> Unit:
    units = {piece.verdict.unit for piece in own}
    return next(unit for unit in ("CPU", "HTP", "folded") if unit in units)


def _on_htp(
    name: str, own: Sequence[Piece], pieces: Mapping[str, Piece], predicted: Placed | None, named: reasons.Names
) -> Iterator[str]:
    if predicted is not None and predicted.unit == "HTP":
        yield predicted.reason
    elif predicted is not None and predicted.unit == "CPU":
        yield "the rules expected it on the CPU, and the compiler takes it"
    if all(piece.node != name for piece in own) and named(own[0].node) != name:
        yield f"its work is done with that of {named(own[0].node)}"
    yield reasons.partition_start(own, pieces, named)


def _added(share: _Share, pieces: Mapping[str, Piece], named: reasons.Names) -> Row:
    (piece,) = share.pieces
    unit = _unit([piece])
    why = reasons.on_cpu(piece.op_type, [piece], pieces, None, named) if unit == "CPU" else ""
    reason = f"{_PUT_IN}; {why}" if why else _PUT_IN
    return Row(piece.node, piece.op_type, unit, share.macs, share.ms, piece.node, reason, _compiler([piece], unit))


def _end(piece: Piece) -> Row:
    unit = _unit([piece])
    reason = _ENDS[piece.op_type] if unit == "CPU" else _PUT_IN
    return Row(piece.node, piece.op_type, unit, 0, None, piece.node, reason, _compiler([piece], unit))


def _became(own: Sequence[Piece]) -> str:
    more = f" and {len(own) - _SHOWN} more" if len(own) > _SHOWN else ""
    return ", ".join(piece.node for piece in own[:_SHOWN]) + more


def _compiler(own: Sequence[Piece], unit: Unit) -> str:
    """What the compiler says of the pieces on this unit, each text once."""
    texts = dict.fromkeys(piece.verdict.reason for piece in own if piece.verdict.unit == unit)
    return " ".join("; ".join(filter(None, list(texts)[:_SHOWN])).split())
