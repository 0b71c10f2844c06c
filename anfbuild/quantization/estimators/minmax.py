"""The full range seen: nothing is clipped, one outlier sets the step of all."""

from __future__ import annotations

from anfbuild.quantization.histogram import TensorStatistics


def minmax(tensor: TensorStatistics, bits: int, percentile: float) -> tuple[float, float]:
    """The exact extremes, widened to hold zero."""
    del bits, percentile
    return min(tensor.low, 0.0), max(tensor.high, 0.0)
