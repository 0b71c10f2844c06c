"""From statistics to the range of every observed tensor."""

from __future__ import annotations

import math

from anfbuild.quantization.estimators.registry import check, get
from anfbuild.quantization.statistics import Statistics

_MANTISSA_BITS = 12
"""The last bits of an activation's extremes differ between CPUs; rounded outward to 12 bits they were always equal."""


def estimate(
    statistics: Statistics, estimator: str, *, bits: int, percentile: float = 99.99
) -> dict[str, tuple[float, float]]:
    """Tensor -> (lo, hi), lo ≤ 0 ≤ hi, rounded outward to 12 significant bits.

    `bits` is the width that the range is to be coded in, `percentile` the share (%) that the estimator of that name
    keeps. Raises RecipeError for an unknown estimator or a bad percentile.
    """
    check(estimator, percentile)
    function = get(estimator)
    ranges = {}
    for name, tensor in statistics.tensors.items():
        lo, hi = function(tensor, bits, percentile)
        ranges[name] = (-_round_up(-lo), _round_up(hi))
    return ranges


def _round_up(value: float) -> float:
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.ceil(math.ldexp(mantissa, _MANTISSA_BITS)), exponent - _MANTISSA_BITS)
