"""What a rewrite did, and what it left alone."""

from __future__ import annotations

import dataclasses

Number = float | str
"""JSON has no infinity: it is written as text."""


@dataclasses.dataclass(frozen=True)
class Rewrite:
    """One change to what one node reads: of `mask_clamp` the constant, of `equalize` the weight range of the
    greatest channel over that of the least."""

    rewrite: str
    node: str
    op_type: str
    old: Number
    new: Number


@dataclasses.dataclass(frozen=True)
class Conditioned:
    """What was changed, and why what looks alike was not."""

    rewrites: list[Rewrite] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)


def number(value: float) -> Number:
    """`value` as JSON can hold it."""
    return float(value) if abs(value) != float("inf") else str(float(value))
