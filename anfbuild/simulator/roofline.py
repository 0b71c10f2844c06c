"""The cost of a node on a chip: a roofline with a fixed overhead.

    time of a node = max(products / rate, weights / DRAM rate + values / on-chip rate + overflow / DRAM rate) + overhead
    time of an inference in burst = fixed time + sum over nodes

Three figures belong to the chip (`Rates`); the ratios below are pooled over seven chips. All were fitted together, by
least squares on log ratios with a soft L1 loss, to 610 public measurements of 43 models in w8a8, w8a16 and float
(Qualcomm AI Hub Models 0.65.0, `perf.yaml`, BSD-3-Clause: hot best case, tight loop, QAIRT 2.50). Models like none of
these fare worse than they do. The weight stream was held near figures from an earlier fit of the same measurements, so
that it stays at or near what the DRAM can give.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from anfbuild.simulator.ops import Kind
from anfbuild.simulator.rates import Rates
from anfbuild.simulator.work import Work

SLOWDOWN = {"w8a8": 1.0, "w8a16": 2.54, "float": 3.98}
"""Time of a product over its time in w8a8."""
_DEPTHWISE_SLOWDOWN = 72.7
"""Time of a depthwise multiply-accumulate, which the vector units do, over that of a padded one in a matrix product."""
_MOVEMENT_SLOWDOWN = 4.31
"""Time to move a byte to another place in its tensor over the time to read it in order."""
_ON_CHIP_SPEEDUP = 2.66
"""On-chip rate of values over the DRAM's rate."""
_NODE_MS = 0.0011
RESIDUAL90 = {"w8a8": (0.52, 1.87), "w8a16": (0.53, 2.02), "float": (0.61, 1.92)}
"""Measured over predicted time, 5th and 95th percentile, each family predicted by a fit that had not seen it."""

Bound = Literal["compute", "memory", "overhead"]


@dataclasses.dataclass(frozen=True)
class NodeCost:
    """What one node costs, and what bounds it."""

    work: Work
    ms: float
    bound: Bound


def node_cost(work: Work, rates: Rates) -> NodeCost:
    """Time of a node in burst. More products or bytes never make it less."""
    slowdown = SLOWDOWN[nearest_precision(work.precision)] if work.precision else 1.0
    if work.kind is Kind.DEPTHWISE:
        compute = work.macs * slowdown * _DEPTHWISE_SLOWDOWN / rates.macs_per_ms
    else:
        compute = work.padded_macs * slowdown / rates.macs_per_ms
    moved = work.activation_bytes * (_MOVEMENT_SLOWDOWN if work.kind is Kind.MOVEMENT else 1.0) / _ON_CHIP_SPEEDUP
    overflow = max(0.0, work.activation_bytes - rates.vtcm_bytes)
    memory = (work.weight_bytes + moved + overflow) / rates.bytes_per_ms
    ms = max(compute, memory) + _NODE_MS
    if ms < 2 * _NODE_MS:
        return NodeCost(work, ms, "overhead")
    return NodeCost(work, ms, "compute" if compute >= memory else "memory")


def nearest_precision(precision: str) -> str:
    """The measured precision whose rate a product is costed with.

    Fewer than 8 bits of weights run at the rate of 8; wide weights and anything without encodings at that of float.
    """
    if precision in SLOWDOWN:
        return precision
    weights, _, activations = precision.removeprefix("w").partition("a")
    if not (weights.isdigit() and activations.isdigit()) or int(weights) > 8 or int(activations) > 16:
        return "float"
    return "w8a8" if int(activations) <= 8 else "w8a16"
