"""How far one tensor is from what it should be, over samples: whole, at the border and inside of it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

_DEPTH = 32
"""The ring is 1/32 of the shorter side, one element at least: a fault of one element at the lowest resolution of the
usual image networks (stride 32) is about that wide at the output."""
_LEAST_SIDE = 4
"""A map with a shorter side has no inside to speak of."""
_RINGED = 4.0
"""From this multiple of the inside's on, a root mean square difference lies at the border."""


@dataclasses.dataclass(frozen=True)
class Part:
    """Root mean square and greatest difference, in shares of the tensor's range."""

    rms: float
    max: float

    def to_json(self) -> dict[str, float]:
        return {"rms": self.rms, "max": self.max}


@dataclasses.dataclass(frozen=True)
class Difference:
    """Of one tensor. Infinite where a value is no number on one side alone, or the shapes differ."""

    tensor: str
    whole: Part
    sqnr_db: float | None
    """10 log10 of the reference's energy over the difference's; None without a difference, or without a reference."""
    ring: int | None
    """Elements from the edge that count as border; None where the tensor is no map."""
    border: Part | None
    interior: Part | None

    @property
    def at_border(self) -> bool:
        """Whether what differs lies at the border: it is several times as far off there as inside."""
        return self.border is not None and self.interior is not None and self.border.rms > _RINGED * self.interior.rms

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is infinite is null, as JSON has none."""
        return {
            "tensor": self.tensor,
            "rms": _finite(self.whole.rms),
            "max": _finite(self.whole.max),
            "sqnr_db": None if self.sqnr_db is None else _finite(self.sqnr_db),
            "ring": self.ring,
            "border": None if self.border is None else self.border.to_json(),
            "interior": None if self.interior is None else self.interior.to_json(),
        }


def difference(
    tensor: str, reference: Sequence[np.ndarray], other: Sequence[np.ndarray], span: float | None = None
) -> Difference:
    """Of `other` from `reference`, one array a sample of any shape and type of numbers.

    `span` is the tensor's range, that of its encoding; None: the one that the reference takes, zero in it. A tensor
    that is zero throughout counts as one of range 1, as its encoding would have it. Values that are equal differ by
    nothing, infinite ones too.
    """
    if any(one.shape != two.shape for one, two in zip(reference, other, strict=True)):
        return Difference(tensor, Part(math.inf, math.inf), None, None, None, None)
    wide = [(one.astype(np.float64), two.astype(np.float64)) for one, two in zip(reference, other, strict=True)]
    apart = [_apart(one, two) for one, two in wide]
    if not all(np.isfinite(values).all() for values in apart):
        return Difference(tensor, Part(math.inf, math.inf), None, None, None, None)
    unit = span or _range([one for one, _ in wide]) or 1.0
    noise = sum(float(np.square(values).sum()) for values in apart)
    signal = sum(float(np.square(one[np.isfinite(one)]).sum()) for one, _ in wide)
    sqnr = 10 * math.log10(signal / noise) if noise and signal else None
    whole = _part(apart, unit)
    ring = ring_width(apart[0].shape) if len({values.shape for values in apart}) == 1 else None
    if ring is None:
        return Difference(tensor, whole, sqnr, None, None, None)
    edge = _edge(apart[0].shape, ring)
    border, interior = ([values[mask] for values in apart] for mask in (edge, ~edge))
    return Difference(tensor, whole, sqnr, ring, _part(border, unit), _part(interior, unit))


def ring_width(shape: tuple[int, ...]) -> int | None:
    """Elements from the edge of a map that count as its border; None for what is no map: not of rank 4, or narrow."""
    if len(shape) != 4:
        return None
    side = min(shape[axis] for axis in _sides(shape))
    return max(1, side // _DEPTH) if side >= _LEAST_SIDE else None


def _sides(shape: tuple[int, ...]) -> tuple[int, int]:
    """The axes of height and width: channels come first (NCHW), but where the last axis is shorter than both of the
    others (NHWC)."""
    return (1, 2) if shape[3] < min(shape[1], shape[2]) else (2, 3)


def _edge(shape: tuple[int, ...], ring: int) -> np.ndarray:
    """Of each element whether it lies within `ring` of the edge."""
    inside = np.ones(shape, np.bool_)
    for axis in _sides(shape):
        places = np.arange(shape[axis])
        within = (places >= ring) & (places < shape[axis] - ring)
        inside &= within.reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return ~inside


def _part(apart: Sequence[np.ndarray], unit: float) -> Part:
    count = sum(values.size for values in apart)
    squares = sum(float(np.square(values).sum()) for values in apart)
    greatest = max((float(values.max(initial=0.0)) for values in apart), default=0.0)
    return Part(math.sqrt(squares / max(count, 1)) / unit, greatest / unit)


def _range(reference: Sequence[np.ndarray]) -> float:
    """Greatest minus least of the finite values, zero among them."""
    finite = [values[np.isfinite(values)] for values in reference]
    greatest = max((float(values.max(initial=0.0)) for values in finite), default=0.0)
    return greatest - min((float(values.min(initial=0.0)) for values in finite), default=0.0)


def _apart(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    same = (one == two) | (np.isnan(one) & np.isnan(two))
    with np.errstate(invalid="ignore"):
        return np.where(same, 0.0, np.abs(one - two))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
