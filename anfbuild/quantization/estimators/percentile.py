"""A central share of the values: the same share is cut off at either end."""

from __future__ import annotations

import numpy as np

from anfbuild.quantization.histogram import TensorStatistics


def percentile(tensor: TensorStatistics, bits: int, percentile: float) -> tuple[float, float]:
    """The range that holds the central `percentile` % of the values, to one bin's width, widened to hold zero."""
    del bits
    cut = tensor.counts.sum() * (100 - percentile) / 200
    edges = tensor.first_edge + tensor.bin_width * np.arange(len(tensor.counts) + 1)
    below = np.concatenate(([0], np.cumsum(tensor.counts)))
    # The cumulated counts are flat over empty bins: the outermost edge that cuts off no more than `cut` is wanted at
    # the lower end, and the innermost one at the upper end, each interpolated inside its bin.
    lo = _crossing(edges, below, cut)
    hi = -_crossing(-edges[::-1], below[-1] - below[::-1], cut)
    return min(max(lo, tensor.low), 0.0), max(min(hi, tensor.high), 0.0)


def _crossing(edges: np.ndarray, below: np.ndarray, cut: float) -> float:
    """The greatest x with at most `cut` values below it, each bin's values taken as evenly spread."""
    last = int(np.searchsorted(below, cut, side="right")) - 1
    if last + 1 >= len(edges):
        return float(edges[-1])
    share = (cut - below[last]) / (below[last + 1] - below[last])
    return float(edges[last] + share * (edges[last + 1] - edges[last]))
