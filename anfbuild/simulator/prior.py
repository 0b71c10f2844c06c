"""Costs common to all measured chips. Written by `python benchmarks/fidelity.py --write`: do not edit."""

from __future__ import annotations

from collections.abc import Mapping

PRIOR: Mapping[str, float] = {
    "macs_8": 8.000e-11,
    "macs_16": 1.846e-10,
    "macs_float": 4.353e-10,
    "vector_bytes": 9.044e-09,
    "heavy_bytes": 1.584e-08,
    "float_bytes": 2.065e-09,
    "stream_bytes": 1.410e-08,
    "depth": 1.469e-03,
    "fixed": 4.894e-02,
}
"""ms a unit (`anfbuild.simulator.compiled.COSTS`) on a chip in the middle of those measured."""

RESIDUAL90: Mapping[str, tuple[float, float]] = {
    "float": (0.549, 1.769),
    "w8a16": (0.665, 2.218),
    "w8a8": (0.587, 1.994),
}
"""Measured over predicted time, 5th and 95th percentile, each family predicted by a fit that had not seen it."""

NEVER_FITTED = 2.934
"""How much wider the interval is on a chip whose costs are another one's."""
