"""Latency from what the compiler made of a model: its works times what they cost on a chip.

    busy   = padded products × cost of their width + bytes of vector operations × cost of their kind
    stream = bytes between DRAM and the chip, spills left out × cost
    latency in burst = sqrt(busy² + stream²) + entries on the longest chain × cost + fixed time

Matrix and vector work add up: they hardly overlap in what was measured. The stream of weights does run beside them.
The works are `anfbuild.qnn.features`; the costs belong to a chip and are fitted (`anfbuild.simulator.fit`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from anfbuild.qnn.features import Features

GROUPS: Mapping[str, tuple[str, ...]] = {
    "matrix": ("macs_8", "macs_16", "macs_float"),
    "vector": ("vector_bytes", "heavy_bytes", "float_bytes"),
    "stream": ("stream_bytes",),
    "chain": ("depth",),
    "call": ("fixed",),
}
"""The costs by the part of a chip that they are of. Chips differ by a factor for each part."""
COSTS = tuple(name for names in GROUPS.values() for name in names)
"""One cost each: ms a unit of the feature of that name, and ms of an inference that does nothing."""
WORKS = COSTS[:-1]
BUSY = (*GROUPS["matrix"], *GROUPS["vector"])


def works(features: Features) -> list[float]:
    """The works that `COSTS` are costs of, in that order; the last is one inference."""
    return [*(float(getattr(features, name)) for name in WORKS), 1.0]


def latency_ms(features: Features, costs: Mapping[str, float]) -> float:
    """Latency in burst. More work never makes it less, where no cost is negative."""
    ms = {name: work * costs[name] for name, work in zip(COSTS, works(features), strict=True)}
    busy = math.fsum(ms[name] for name in BUSY)
    return math.hypot(busy, ms["stream_bytes"]) + ms["depth"] + ms["fixed"]
