"""The range with the least expected squared error: what is clipped against how coarse the steps become.

For a range [lo, hi] of N steps of width s = (hi - lo) / N, the expected error is the sum over v < lo of (v - lo)^2,
plus the sum over v > hi of (v - hi)^2, plus the rounding of the values inside: v^2 where |v| ≤ s / 2, for those become
zero, and s^2 / 12 elsewhere, the variance of rounding (Bennett 1948).
"""

from __future__ import annotations

import numpy as np

from anfbuild.quantization.histogram import TensorStatistics

_TOLERANCE = 1.05
"""Of the pairs whose loss is this near the least, the widest is taken: the samples' extremes are lower bounds of what
is to come, and a range that gains nothing on the samples should not clip what they did not show."""

_CANDIDATES = 0.95 ** np.arange(110)
"""Shares of an extreme that are tried as limits, down to 0.4 %: the loss is flat enough at its least for 5 % steps."""


def mse(tensor: TensorStatistics, bits: int, percentile: float) -> tuple[float, float]:
    """The best of all pairs (lo, hi) of candidates; the widest one of those that are about equally good."""
    del percentile
    lows = tensor.low * _CANDIDATES if tensor.low < 0 else np.zeros(1)
    highs = tensor.high * _CANDIDATES if tensor.high > 0 else np.zeros(1)
    centres = tensor.first_edge + tensor.bin_width * (np.arange(len(tensor.counts)) + 0.5)
    centres = np.clip(centres, tensor.low, tensor.high)
    weights = tensor.counts.astype(np.float64)
    if tensor.zeros:  # zeros are represented exactly, whatever the range
        weights[round(-tensor.first_edge / tensor.bin_width)] -= tensor.zeros
        weights = np.maximum(weights, 0.0)
    moments = np.zeros((3, len(centres) + 1))  # sums of v^0, v^1 and v^2 over the first bins
    np.cumsum(weights * centres ** np.arange(3)[:, None], axis=1, out=moments[:, 1:])

    step = (highs[None, :] - lows[:, None]) / (2**bits - 1)
    below, above = _bin(tensor, lows), _bin(tensor, highs)
    clipped_low = _squares(moments[:, below] - moments[:, [0]], lows)
    clipped_high = _squares(moments[:, [-1]] - moments[:, above], highs)
    inside = (moments[0, above][None, :] - moments[0, below][:, None]).clip(min=0)
    first = np.maximum(_bin(tensor, -step / 2), below[:, None])
    last = np.maximum(np.minimum(_bin(tensor, step / 2), above[None, :]), first)
    to_zero = moments[:, last] - moments[:, first]
    loss = clipped_low[:, None] + clipped_high[None, :] + to_zero[2] + (inside - to_zero[0]).clip(min=0) * step**2 / 12
    good = loss <= _TOLERANCE * loss.min()
    low, high = np.unravel_index(int(np.argmax(np.where(good, step, -1.0))), loss.shape)
    return float(lows[low]), float(highs[high])


def _bin(tensor: TensorStatistics, values: np.ndarray) -> np.ndarray:
    """How many bins have their centre below each value."""
    bins = np.ceil((values - tensor.first_edge) / tensor.bin_width - 0.5)
    found: np.ndarray = np.clip(bins, 0, len(tensor.counts)).astype(np.intp)
    return found


def _squares(moments: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """The sum of (v - origin)^2 from the sums of v^0, v^1 and v^2."""
    found: np.ndarray = np.maximum(moments[2] - 2 * origin * moments[1] + origin**2 * moments[0], 0.0)
    return found
