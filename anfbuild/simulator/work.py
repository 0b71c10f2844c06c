"""What each node of a model has to do: products and bytes, read from a float or a QDQ graph.

Nothing here knows a chip. QuantizeLinear and DequantizeLinear are not work: they say how wide a value is in memory.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import onnx
from onnx import TensorProto

from anfbuild.errors import StepError
from anfbuild.graph import node_macs, value_shapes
from anfbuild.graph.edit import place
from anfbuild.simulator.ops import Kind, kind_of, reads_whole_constant

FLOAT_BITS = 16
"""The HTP computes float graphs in half precision, so that a float32 value takes 16 bits of its memory."""
_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
_BITS = {
    **dict.fromkeys((TensorProto.INT4, TensorProto.UINT4), 4),
    **dict.fromkeys((TensorProto.INT8, TensorProto.UINT8, TensorProto.BOOL), 8),
    **dict.fromkeys((TensorProto.INT16, TensorProto.UINT16), 16),
    **dict.fromkeys(_FLOATS, FLOAT_BITS),
}
_WORD_BITS = 32
"""Every other type, 64-bit indices too, is held in words."""
_CHANNELS = 32
"""The matrix engine takes channels by 32 and pads what does not fill a block. (It pads positions too, but adding that
did not make the fit of `anfbuild.simulator.roofline` any better.)"""


@dataclasses.dataclass(frozen=True)
class Work:
    """One node's work."""

    name: str
    op_type: str
    kind: Kind
    precision: str | None
    """`w8a8`, `w8a16`, ... of a node that multiplies; `float` where an operand has no encoding; None for the rest."""
    macs: int
    """Multiply-accumulates that the operator's definition asks for."""
    padded_macs: int
    """The same with the channels padded to the matrix engine's blocks: never less than `macs`."""
    weight_bytes: int
    """Bytes of the constants read."""
    activation_bytes: int
    """Bytes of the other values read and written, each once."""
    known: bool
    """False where the cost model has no rule for the operator: costed as movement."""


def workload(model: onnx.ModelProto) -> list[Work]:
    """The work of every node that costs something, in the model's order.

    Left out: QuantizeLinear and DequantizeLinear, views, what depends on constants alone (folded by the compiler), and
    element-wise nodes that the compiler fuses: those that read one value only, directly or through others of their
    kind (the two branches of SiLU, the five nodes of GELU), made by a node that costs something.
    Raises StepError where a shape cannot be found, and for a convolution of no groups.
    """
    values = Values(model)
    macs = node_macs(model)
    return [_work(node, values, macs) for node in values.costed]


class Values:
    """Which values are constants, which are other names of the same bytes, and how wide each is."""

    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self._shapes = value_shapes(model)
        self._types = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.output, *graph.value_info)}
        self._constant_bits: dict[str, int] = {}
        self._constant_shapes: dict[str, tuple[int, ...]] = {}
        self._encoded_bits: dict[str, int] = {}
        self._roots: dict[str, str] = {}
        self._zero_point_types = {i.name: i.data_type for i in graph.initializer}
        for tensor in graph.initializer:
            self._add_constant(tensor.name, tuple(tensor.dims), _BITS.get(tensor.data_type, _WORD_BITS))
        made: set[str] = set()
        self.costed: list[onnx.NodeProto] = []
        for node in graph.node:
            if self._is_free(node, made):
                continue
            self.costed.append(node)
            made.update(node.output)

    def data(self, node: onnx.NodeProto) -> list[str]:
        """The distinct values that a node reads and that are not constants, by the name of their bytes."""
        read = (self._roots.get(name, name) for name in node.input if name and name not in self._constant_bits)
        return list(dict.fromkeys(read))

    def root(self, name: str) -> str:
        """The name of the bytes that `name` is a name of."""
        return self._roots.get(name, name)

    def constants(self, node: onnx.NodeProto) -> list[str]:
        """The distinct constants that a node reads."""
        return [name for name in dict.fromkeys(node.input) if name in self._constant_bits]

    def is_constant(self, name: str) -> bool:
        return name in self._constant_bits

    def shape(self, name: str) -> tuple[int, ...]:
        return self._constant_shapes.get(name) or self._shapes.get(name, ())

    def bits(self, name: str) -> int:
        """Bits of one element as it lies in memory."""
        if name in self._constant_bits:
            return self._constant_bits[name]
        root = self._roots.get(name, name)
        return self._encoded_bits.get(root) or _BITS.get(self._types.get(root, TensorProto.FLOAT), _WORD_BITS)

    def is_encoded(self, name: str) -> bool:
        return self._roots.get(name, name) in self._encoded_bits

    def bytes(self, name: str) -> int:
        return math.ceil(math.prod(self.shape(name)) * self.bits(name) / 8)

    def _add_constant(self, name: str, shape: tuple[int, ...], bits: int) -> None:
        self._constant_shapes[name] = shape
        self._constant_bits[name] = bits

    def _is_free(self, node: onnx.NodeProto, made: set[str]) -> bool:
        """True where a node makes no work; what it gives is then noted as a constant or as another name."""
        data = self.data(node)
        if node.op_type == "QuantizeLinear" and data:
            width = self._encoding_bits(node)
            self._encoded_bits[data[0]] = max(width, self._encoded_bits.get(data[0], 0))
        if not data:
            return self._fold(node)
        kind = kind_of(node.op_type, node.domain)
        one_name = node.op_type in ("QuantizeLinear", "DequantizeLinear") or kind is Kind.VIEW
        fused = kind is Kind.POINTWISE and len(data) == 1 and data[0] in made
        if one_name or fused:
            self._roots[node.output[0]] = data[0]
        return one_name or fused

    def _fold(self, node: onnx.NodeProto) -> bool:
        """Note the outputs of a node that reads constants alone. Their width is that of the first constant read."""
        bits = self._constant_bits.get(node.input[0], FLOAT_BITS) if node.input else FLOAT_BITS
        if node.op_type == "QuantizeLinear":
            bits = self._encoding_bits(node)
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                bits = _BITS.get(attribute.t.data_type, _WORD_BITS)
                self._zero_point_types[node.output[0]] = attribute.t.data_type
        for output in node.output:
            self._add_constant(output, self._shapes.get(output, ()), bits)
        return True

    def _encoding_bits(self, node: onnx.NodeProto) -> int:
        """Width that a QuantizeLinear gives: its zero point's type, else `output_dtype`, else ONNX's default uint8."""
        kind = TensorProto.UINT8
        for attribute in node.attribute:
            if attribute.name == "output_dtype" and attribute.i:
                kind = attribute.i
        if len(node.input) > 2 and node.input[2]:
            kind = self._zero_point_types.get(node.input[2], kind)
        return _BITS.get(kind, _WORD_BITS)


def _work(node: onnx.NodeProto, values: Values, macs: Mapping[str, int]) -> Work:
    listed = kind_of(node.op_type, node.domain)
    kind = listed or Kind.MOVEMENT
    products = macs[node.name] if kind is Kind.MATRIX else 0
    padded = products
    if node.op_type in ("Conv", "ConvTranspose") and kind is Kind.MATRIX:
        groups, inputs, outputs = _channels(node, values)
        if groups > 1 and min(inputs, outputs) == 1:
            kind = Kind.DEPTHWISE
        else:
            padded = products * _padded_channels(groups, inputs, outputs) // max(1, groups * inputs * outputs)
    elif kind is Kind.MATRIX:
        columns = values.shape(node.output[0])[-1:]
        depth = products // max(1, math.prod(values.shape(node.output[0])))
        padded = products * math.prod(_up(size, _CHANNELS) for size in (*columns, depth))
        padded //= max(1, math.prod((*columns, depth)))
    weights = values.constants(node) if reads_whole_constant(node.op_type) else []
    return Work(
        name=node.name,
        op_type=node.op_type,
        kind=kind,
        precision=_precision(node, values) if products else None,
        macs=products,
        padded_macs=padded,
        weight_bytes=sum(values.bytes(name) for name in weights),
        activation_bytes=sum(values.bytes(name) for name in (*values.data(node), *filter(None, node.output))),
        known=listed is not None,
    )


def _channels(node: onnx.NodeProto, values: Values) -> tuple[int, int, int]:
    """Groups of a convolution, and the input and output channels of one. Raises StepError for one of no groups."""
    groups = next((attribute.i for attribute in node.attribute if attribute.name == "group"), 1)
    if groups < 1:
        raise StepError(f"a convolution of {groups} groups", where=place(node), remedy="Export the model again.")
    first, second = values.shape(node.input[1])[:2]
    return (groups, first // groups, second) if node.op_type == "ConvTranspose" else (groups, second, first // groups)


def _padded_channels(groups: int, inputs: int, outputs: int) -> int:
    """Padded products of channels at one position and one tap.

    Small groups may be computed each on its own or as one dense product with zeros between: the cheaper counts.
    """
    apart = groups * _up(inputs, _CHANNELS) * _up(outputs, _CHANNELS)
    dense = _up(inputs * groups, _CHANNELS) * _up(outputs * groups, _CHANNELS)
    return min(apart, dense)


def _precision(node: onnx.NodeProto, values: Values) -> str:
    operands = node.input[:2]
    activations = [name for name in operands if not values.is_constant(name)]
    if not all(values.is_encoded(name) for name in activations):
        return "float"
    activation_bits = max(values.bits(name) for name in activations)
    # A product of two activations has no weights: its second operand is read as weights are.
    weights = [values.bits(name) for name in operands if values.is_constant(name)]
    return f"w{max(weights, default=min(activation_bits, 8))}a{activation_bits}"


def _up(size: int, block: int) -> int:
    return -(-size // block) * block
