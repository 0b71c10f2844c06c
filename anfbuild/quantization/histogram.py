"""A histogram of a stream of values whose range is not known beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

BINS = 4096
"""The greatest number of bins; between half of it and all of it span the values seen."""


@dataclass(frozen=True)
class TensorStatistics:
    """What the range estimators know of one tensor.

    `low` and `high` are the exact extremes over all samples. `counts[i]` (int64) is how many values fell into
    [first_edge + i * bin_width, first_edge + (i + 1) * bin_width), of a sample of the values scaled up to the
    whole; `zeros` of them, in the bin that begins at 0, are exactly zero.
    """

    low: float
    high: float
    first_edge: float
    bin_width: float
    counts: np.ndarray
    zeros: int


class Histogram:
    """Bins whose width is a power of two and whose edges are multiples of it.

    When a value falls outside, the width is doubled and neighbours are merged until all fits: every value stays in
    the bin that it would be in had the width been known from the start, so the order of the samples does not matter.
    """

    def __init__(self) -> None:
        self._low = math.inf
        self._high = -math.inf
        self._exponent: int | None = None
        self._first = 0
        self._counts = np.zeros((3, BINS), np.int64)  # of values, of the minima of rows, of the maxima of rows
        self._zeros = 0

    def add(self, values: np.ndarray, minima: np.ndarray, maxima: np.ndarray, weight: int = 1) -> None:
        """Count `values` (float32, finite, any shape), each standing for `weight` values of a tensor.

        `minima` and `maxima` are those of parts of the whole tensor: they show its extremes and, in the tails, how
        many values at least lie beyond any limit.
        """
        exponent = self._make_room(float(minima.min()), float(maxima.max()))
        for counts, found, each in zip(self._counts, (values, minima, maxima), (weight, 1, 1), strict=True):
            index = np.floor(found * np.float32(2.0**-exponent)).astype(np.intp)  # exact: a power of two
            index -= self._first
            counts += np.bincount(index.ravel(), minlength=BINS) * each
        self._zeros += (values.size - int(np.count_nonzero(values))) * weight

    def statistics(self) -> TensorStatistics:
        """What was seen, without the empty bins at either end. At least one value must have been added."""
        assert self._exponent is not None
        counts = _with_tails(*self._counts)
        used = np.flatnonzero(counts)
        start, stop = int(used[0]), int(used[-1]) + 1
        return TensorStatistics(
            low=self._low,
            high=self._high,
            first_edge=math.ldexp(self._first + start, self._exponent),
            bin_width=math.ldexp(1.0, self._exponent),
            counts=counts[start:stop],
            zeros=self._zeros,
        )

    def _make_room(self, low: float, high: float) -> int:
        self._low, self._high = min(self._low, low), max(self._high, high)
        exponent = _least_exponent(self._low, self._high)
        if self._exponent is None:
            self._exponent, self._first = exponent, _bin(self._low, exponent)
        exponent = max(exponent, self._exponent)
        first = self._first >> (exponent - self._exponent)
        if not (first <= _bin(self._low, exponent) and _bin(self._high, exponent) < first + BINS):
            first = _bin(self._low, exponent)
        if (exponent, first) != (self._exponent, self._first):
            counts = np.zeros_like(self._counts)
            for old, new in zip(self._counts, counts, strict=True):
                used = np.flatnonzero(old)
                np.add.at(new, ((used + self._first) >> (exponent - self._exponent)) - first, old[used])
            self._exponent, self._first, self._counts = exponent, first, counts
        return exponent


def _with_tails(values: np.ndarray, minima: np.ndarray, maxima: np.ndarray) -> np.ndarray:
    """The histogram of the sampled values, its tails raised to what the extremes of rows prove. Its sum is kept.

    A row whose maximum exceeds x holds at least one value that does: the number of such rows is a lower bound of the
    values above x, where a strided sample may have seen none.
    """
    middle = int(np.searchsorted(np.cumsum(values), values.sum() / 2))
    counts = np.zeros_like(values)
    for step, extremes in ((1, minima), (-1, maxima)):
        tail = slice(None, middle) if step == 1 else slice(None, middle, -1)
        beyond = np.maximum(np.cumsum(values[tail]), np.cumsum(extremes[tail]))
        counts[tail] = np.diff(beyond, prepend=0)
    counts[middle] = values.sum() - counts.sum()
    return counts


def _bin(value: float, exponent: int) -> int:
    return math.floor(math.ldexp(value, -exponent))


def _least_exponent(low: float, high: float) -> int:
    """The least exponent of a bin width at which [low, high] fits into BINS bins.

    It is kept so great that bin numbers of float32 values are exact (24 bits) and inside the normal numbers.
    """
    magnitude = max(abs(low), abs(high))
    exponent = max(math.frexp(magnitude)[1] - 23, -100) if magnitude else -100
    if high > low:
        exponent = max(exponent, math.frexp((high - low) / BINS)[1] - 1)
    while _bin(high, exponent) - _bin(low, exponent) >= BINS:
        exponent += 1
    return exponent
