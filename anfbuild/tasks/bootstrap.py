"""How far a metric may be off by the choice of samples: a seeded bootstrap over them (Efron, 1979)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Value = Callable[[NDArray[np.int64]], NDArray[np.float64]]
"""Summed counts (…, counts) → metric (…)."""

RESAMPLES = 2000
_TAILS = (0.025, 0.975)


def interval(counts: NDArray[np.int64], value: Value, *, seed: int = 0) -> tuple[float, float]:
    """95 % interval of the metric, from per-sample `counts` (samples, counts): samples drawn with replacement."""
    return _quantiles(value(_resampled(counts, seed)))


def drop_interval(
    reference: NDArray[np.int64], counts: NDArray[np.int64], value: Value, *, seed: int = 0
) -> tuple[float, float]:
    """95 % interval of metric(reference) - metric(counts), in the metric's unit, on the same samples.

    Both have the shape (samples, counts) in the same order; every resample takes the same samples of both, so that
    what makes a sample easy or hard cancels. Raises ValueError for other shapes.
    """
    if reference.shape != counts.shape:
        raise ValueError(f"not the same samples: {reference.shape} and {counts.shape}")
    return _quantiles(value(_resampled(reference, seed)) - value(_resampled(counts, seed)))


def _resampled(counts: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """(RESAMPLES, counts): sums over samples that depend on the seed and the number of samples alone."""
    samples = len(counts)
    drawn = np.random.PCG64(seed).random_raw(RESAMPLES * samples) % np.uint64(samples)
    times = np.zeros((RESAMPLES, samples), np.int64)
    np.add.at(times, (np.repeat(np.arange(RESAMPLES), samples), drawn.astype(np.intp)), 1)
    return times @ counts


def _quantiles(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, _TAILS)
    return float(low), float(high)
