"""Costs common to all measured chips. Written by `python benchmarks/fidelity.py --write`: do not edit."""

from __future__ import annotations

from collections.abc import Mapping

PRIOR: Mapping[str, float] = {
    "macs_8": 8.124e-11,
    "macs_16": 1.923e-10,
    "macs_float": 4.459e-10,
    "vector_bytes": 8.735e-09,
    "heavy_bytes": 1.485e-08,
    "float_bytes": 8.627e-10,
    "stream_bytes": 1.333e-08,
    "depth": 1.468e-03,
    "fixed": 5.559e-02,
}
"""ms a unit (`anfbuild.simulator.compiled.COSTS`) on a chip in the middle of those measured."""

RESIDUAL90: Mapping[str, tuple[float, float]] = {
    "float": (0.523, 1.849),
    "w8a16": (0.635, 2.190),
    "w8a8": (0.577, 1.978),
}
"""Measured over predicted time, 5th and 95th percentile, each family predicted by a fit that had not seen it."""

NEVER_FITTED = 3.094
"""How much wider the interval is on a chip whose costs are another one's."""
