"""What a model is judged for: a chip and a precision."""

from __future__ import annotations

import dataclasses
import math

import onnx

from anfbuild.graph import large
from anfbuild.graph.edit import constant_value


@dataclasses.dataclass(frozen=True)
class Precision:
    """The bits that a quantization scheme gives; `quantized` False: half precision throughout; `as_is`: the model
    brings them, and these are those of most of its values."""

    name: str
    activation_bits: int
    weight_bits: int
    per_channel: bool = False
    quantized: bool = True
    as_is: bool = False
    """The model's own encodings are kept: no quantizer mends anything."""


FLOAT16 = Precision("fp16", 16, 16, quantized=False)
"""The model as it is, computed in half precision."""


AS_IS = "as_is"
"""The scheme that keeps the encodings of a model that is quantized already."""


def carried(model: onnx.ModelProto) -> Precision:
    """The precision of the encodings that a model brings: the most bits of each kind; 8 where it says nothing.

    Weights are what is dequantized out of an initializer.
    """
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    constants |= {value.name: value for value in map(constant_value, model.graph.node) if value is not None}
    activations, weights, per_channel = {8}, {8}, False
    for node in model.graph.node:
        if node.op_type not in ("QuantizeLinear", "DequantizeLinear"):
            continue
        zero = constants.get(node.input[2]) if len(node.input) > 2 else None
        bits = large.bits_of(zero.data_type) if zero is not None else 8
        is_weight = node.input[0] in constants
        if is_weight and bits <= 16:  # 32 bits: a bias
            weights.add(bits)
            scale = constants.get(node.input[1])
            per_channel |= scale is not None and math.prod(scale.dims) > 1
        elif not is_weight:
            activations.add(bits)
    return Precision(AS_IS, max(activations), max(weights), per_channel, as_is=True)


@dataclasses.dataclass(frozen=True)
class Aim:
    """The chip and the precision."""

    target: str
    """How messages call the chip."""
    arch: str
    """Its Hexagon architecture, "v75"."""
    vtcm_mb: int
    """On-chip memory of its HTP, MiB."""
    fp16: bool
    """Whether its HTP computes in half precision."""
    precision: Precision

    @property
    def generation(self) -> int:
        """75 of "v75"."""
        return int(self.arch.removeprefix("v"))

    @property
    def vtcm_bytes(self) -> int:
        """On-chip memory of its HTP, bytes."""
        return self.vtcm_mb * 2**20
