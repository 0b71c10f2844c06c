"""The range with the least expected squared error: what is clipped against how coarse the steps become.

For a range [lo, hi] of N steps of width s = (hi - lo) / N, the expected error is
sum over v < lo of (v - lo)^2 + sum over v > hi of (v - hi)^2 + (values inside that are not zero) * s^2 / 12:
the variance of rounding is s^2 / 12 (Bennett 1948), and zero is represented exactly.
"""

from __future__ import annotations

import numpy as np

from anfbuild.quantization.histogram import TensorStatistics

_TOLERANCE = 1.05
"""Of the pairs whose loss is this near the least, the widest is taken: the samples' extremes are lower bounds of what
is to come, and a range that gains nothing on the samples should not clip what they did not show."""

_CANDIDATES = 0.97 ** np.arange(200)
"""Shares of an extreme that are tried as limits, down to 0.2 %: the loss is flat enough at its least for 3 % steps."""


def mse(tensor: TensorStatistics, bits: int, percentile: float) -> tuple[float, float]:
    """The best of all pairs (lo, hi) of candidates; the widest one of those that are about equally good."""
    del percentile
    lows = min(tensor.low, 0.0) * _CANDIDATES if tensor.low < 0 else np.zeros(1)
    highs = max(tensor.high, 0.0) * _CANDIDATES if tensor.high > 0 else np.zeros(1)
    centres = tensor.first_edge + tensor.bin_width * (np.arange(len(tensor.counts)) + 0.5)
    centres = np.clip(centres, tensor.low, tensor.high)
    below_count, below_error = _tail(-centres[::-1], tensor.counts[::-1], -lows)
    above_count, above_error = _tail(centres, tensor.counts, highs)
    inside = tensor.counts.sum() - tensor.zeros - below_count[:, None] - above_count[None, :]
    step = (highs[None, :] - lows[:, None]) / (2**bits - 1)
    loss = below_error[:, None] + above_error[None, :] + np.maximum(inside, 0) * step**2 / 12
    good = loss <= _TOLERANCE * loss.min()
    low, high = np.unravel_index(int(np.argmax(np.where(good, step, -1.0))), loss.shape)
    return float(lows[low]), float(highs[high])


def _tail(centres: np.ndarray, counts: np.ndarray, limits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each limit: the count, and the sum of squared distances, of the values above it. `centres` ascend."""
    weights = counts.astype(np.float64)
    sums = [np.concatenate((np.cumsum((weights * centres**power)[::-1])[::-1], [0.0])) for power in (0, 1, 2)]
    start = np.searchsorted(centres, limits, side="right")
    count, first, second = (values[start] for values in sums)
    return count, np.maximum(second - 2 * limits * first + limits**2 * count, 0.0)
