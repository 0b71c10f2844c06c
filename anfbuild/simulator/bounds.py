"""What bounds each node of a float model in a precision that it does not have yet: before anything is quantized."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Literal

import onnx

from anfbuild.simulator.rates import Rates, read_rates
from anfbuild.simulator.roofline import node_cost
from anfbuild.simulator.work import FLOAT_BITS, Work, workload

Bound = Literal["compute", "dram", "vtcm", "overhead"]


@dataclasses.dataclass(frozen=True)
class NodeBound:
    """A node's work and what holds it up. Predicted: nothing was run."""

    node: str
    op_type: str
    macs: int
    bytes: int
    """Weights, and values read and written, each once."""
    ms: float
    """In burst."""
    bound: Bound
    """compute: the matrix or vector units; dram: the stream of weights, or of values that the chip cannot hold; vtcm:
    values on the chip; overhead: it is too small for any of them."""

    @property
    def intensity(self) -> float | None:
        """Multiply-accumulates a byte; None where nothing is moved."""
        return self.macs / self.bytes if self.bytes else None

    def to_json(self) -> dict[str, object]:
        """Plain values. Times in ms, rounded to 1 ns."""
        intensity = self.intensity
        return {
            **vars(self),
            "ms": round(self.ms, 6),
            "intensity": None if intensity is None else round(intensity, 3),
        }


def bounds(
    model: onnx.ModelProto, target: Mapping[str, object], activation_bits: int, weight_bits: int
) -> list[NodeBound]:
    """The bound of each node that costs something, were the float `model` (static shapes, every node named) in these
    bits. Constants need no values. `target` is a recipe's target.

    Raises RecipeError for a bad target, StepError where a shape is not known.
    """
    rates = read_rates(target)
    return [_bound(_narrowed(work, activation_bits, weight_bits), rates) for work in workload(model)]


def _narrowed(work: Work, activation_bits: int, weight_bits: int) -> Work:
    """The work in other widths than the half precision of a float graph."""
    quantized = (activation_bits, weight_bits) != (FLOAT_BITS, FLOAT_BITS)
    return dataclasses.replace(
        work,
        precision=f"w{weight_bits}a{activation_bits}" if work.precision and quantized else work.precision,
        weight_bytes=work.weight_bytes * weight_bits // FLOAT_BITS,
        activation_bytes=work.activation_bytes * activation_bits // FLOAT_BITS,
    )


def _bound(work: Work, rates: Rates) -> NodeBound:
    cost = node_cost(work, rates)
    bound: Bound = "compute"
    if cost.bound == "overhead":
        bound = "overhead"
    elif cost.bound == "memory":
        still = dataclasses.replace(work, macs=0, padded_macs=0, precision=None)
        weights = node_cost(dataclasses.replace(still, activation_bytes=0), rates).ms
        values = node_cost(dataclasses.replace(still, weight_bytes=0), rates).ms
        bound = "dram" if weights >= values or work.activation_bytes > rates.vtcm_bytes else "vtcm"
    return NodeBound(work.name, work.op_type, work.macs, work.weight_bytes + work.activation_bytes, cost.ms, bound)
