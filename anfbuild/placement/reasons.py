"""Why a node is where it is, in plain words; where a neighbour is the cause, that one is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from anfbuild.placement.pieces import Piece

if TYPE_CHECKING:
    from anfbuild.graph.constraints import Placed

_QUOTED = re.compile(r"`([^`]+)`")

Names = Callable[[str], str]
"""Node of the QDQ model -> how people call it: the source node that it came from."""


def on_cpu(
    op_type: str, own: Sequence[Piece], pieces: Mapping[str, Piece], predicted: Placed | None, named: Names
) -> str:
    """Why a node is on the CPU whose work the pieces `own` do, one of them there at least."""
    left = [piece for piece in own if piece.on_cpu]
    part = f"of the {len(own)} nodes that it became, {len(left)} on the CPU: " if len(left) < len(own) else ""
    refused = next((piece for piece in left if piece.verdict.refused), None)
    if refused is not None:
        return part + _refused(op_type, refused, pieces, predicted, named)
    culprit = next((found for piece in left for found in _culprits(piece, pieces)), None)
    if culprit is not None:
        return part + _because_of(left[0], culprit, named)
    if predicted is not None and predicted.unit == "CPU":
        return part + predicted.reason
    return f"{part}neither the rules nor the compiler give a reason, and no neighbour is on the CPU"


def partition_start(own: Sequence[Piece], pieces: Mapping[str, Piece], named: Names) -> str:
    """Which node on the CPU cuts a node of the HTP off from the partition before; empty where none does."""
    for piece in own:
        cut = next((pieces[name] for name in piece.before if pieces[name].on_cpu), None)
        if cut is not None and piece.verdict.partition is not None:
            return (
                f"partition {piece.verdict.partition + 1} of the HTP begins here, behind {_called(cut, named)}, "
                "which is on the CPU"
            )
    return ""


def _refused(op_type: str, piece: Piece, pieces: Mapping[str, Piece], predicted: Placed | None, named: Names) -> str:
    text = piece.verdict.reason
    other = next((name for name in _QUOTED.findall(text) if name != piece.node and name in pieces), None)
    if other is not None:
        return f"the compiler takes it together with {_called(pieces[other], named)}, which the HTP does not take"
    what = op_type if piece.op_type == op_type else f"{piece.op_type}, which it became,"
    if predicted is None or predicted.unit != "CPU":
        reason = f"the compiler refuses this {what} for the HTP; no rule foresaw it"
    elif predicted.reason in text or not predicted.reason:
        reason = f"the HTP does not take {what} in this form and precision"
    else:
        reason = f"the HTP does not take {what} in this form and precision: {predicted.reason}"
    return reason + _beside(op_type, piece, pieces, named)


def _beside(op_type: str, piece: Piece, pieces: Mapping[str, Piece], named: Names) -> str:
    """The neighbours of a heavy node that are on the CPU too: often it is what they do that it is refused for."""
    from anfbuild.graph.constraints.operators import HEAVY

    near = [pieces[name] for name in (*piece.before, *piece.after) if pieces[name].on_cpu]
    if op_type not in HEAVY or not near:
        return ""
    return f"; beside it, on the CPU too: {', '.join(_called(other, named) for other in near[:3])}"


def _because_of(piece: Piece, culprit: Piece, named: Names) -> str:
    side = "reads it" if culprit.node in piece.after else "makes what it reads" if culprit.node in piece.before else ""
    near = f"{_called(culprit, named)}{f', which {side},' if side else ', near by,'} is on the CPU"
    if piece.verdict.merged:
        return f"{near}, and this node has become a part of it"
    return f"{near}, and the compiler does not claim this node beside it"


def _culprits(piece: Piece, pieces: Mapping[str, Piece]) -> Iterator[Piece]:
    """The nodes that the compiler refused, the nearest first, over neighbours that are on the CPU."""
    seen, edge = {piece.node}, [piece]
    while edge:
        near = [name for at in edge for name in (*at.after, *at.before)]
        edge = [pieces[name] for name in dict.fromkeys(near) if name not in seen and pieces[name].on_cpu]
        seen.update(found.node for found in edge)
        yield from (found for found in edge if found.verdict.refused)


def _called(piece: Piece, named: Names) -> str:
    return f"{named(piece.node)} ({piece.op_type})"
