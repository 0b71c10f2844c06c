"""What the nodes of a model read and make, as rows of values that lie on chip in whole blocks.

A node that makes row r of its result needs the rows of its operand that its window covers there, or all of it where any
row of the result depends on every row (`Window`).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import onnx

from anfbuild.simulator.ops import reads_whole_constant
from anfbuild.simulator.work import Values

ROWS = 8
"""The HTP holds images in blocks of 8 rows, 8 columns and 32 channels: nothing smaller is computed at a time."""
_COLUMNS, _CHANNELS = 8, 32
_ORDERS = 2
"""Rows of channels, such as tokens, are held in the order of the matrix engine and in their own. Fitted."""
_WIDE = 2**20
"""Bytes of weights from which on a fully connected layer computes all of its rows at once, and leaves them as blocks of
which one row in `ROWS` is used. Fitted."""


@dataclasses.dataclass(frozen=True)
class Window:
    """Rows of an operand that rows of the result need: `kernel` of them, from `stride` times the row's own number on,
    less `before` (padding). `whole`: any row needs all."""

    stride: float = 1.0
    kernel: int = 1
    before: int = 0
    whole: bool = False


@dataclasses.dataclass(frozen=True)
class Value:
    """A value that a node makes, or an input of the graph, as it lies on chip."""

    name: str
    bytes: int
    """As many as its elements take."""
    padded: int
    """The same in whole blocks."""
    rows: int


@dataclasses.dataclass(frozen=True)
class Stage:
    """A node that costs something: what it reads and makes. All bytes are those of one inference."""

    name: str
    op_type: str
    reads: Mapping[str, Window]
    """By value; constants left out."""
    makes: tuple[str, ...]
    weight_bytes: int
    """Constants, channels padded to whole blocks."""


@dataclasses.dataclass(frozen=True)
class Flow:
    """The nodes of a model in their order, and the values between them."""

    stages: tuple[Stage, ...]
    values: Mapping[str, Value]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constant_bytes: int = 0
    """Of all constants, as they are stored."""


def flow(model: onnx.ModelProto) -> Flow:
    """The flow of a clean float or QDQ model. Raises StepError where a shape cannot be found."""
    found = Values(model)
    inputs = tuple(dict.fromkeys(found.root(v.name) for v in model.graph.input if not found.is_constant(v.name)))
    shapes = _Shapes(found, inputs)
    stages = tuple(_stage(node, found, shapes) for node in found.costed)
    made = dict.fromkeys((*inputs, *(name for stage in stages for name in stage.makes)))
    wide = {name for stage in stages if _is_wide(stage) for name in stage.makes}
    values = {name: _value(name, found, shapes, ROWS if name in wide else _ORDERS) for name in made}
    ends = tuple(dict.fromkeys(name for v in model.graph.output if (name := found.root(v.name)) in values))
    # An input comes as it is, and is put into blocks as it is read. An output that is shuffled goes as it is, all of it
    # at once.
    shuffled = {name for stage in stages if stage.op_type == "DepthToSpace" for name in stage.makes if name in ends}
    values |= {name: dataclasses.replace(values[name], padded=values[name].bytes) for name in (*inputs, *shuffled)}
    stages = tuple(_at_once(stage) if shuffled.intersection(stage.makes) else stage for stage in stages)
    folded = {name for node in model.graph.node if node.op_type != "Constant" for name in node.output}
    read = {name for node in model.graph.node for name in node.input if found.is_constant(name)}
    return Flow(stages, values, inputs, ends, sum(map(found.bytes, read - folded)))


def _at_once(stage: Stage) -> Stage:
    return dataclasses.replace(stage, reads=dict.fromkeys(stage.reads, Window(whole=True)))


class _Shapes:
    """Batch, rows, columns and channels of values: images have their channels second, all else has them last."""

    def __init__(self, values: Values, inputs: Sequence[str]) -> None:
        self._values = values
        self._images: set[str] = set()
        for node in values.costed:
            data = values.data(node)
            if node.op_type in _OF_IMAGES:
                self._images.update(name for name in data if name in inputs)
            if node.op_type in _OF_IMAGES or (data[0] in self._images and node.op_type not in _OF_ROWS):
                self._images.update(node.output)

    def is_image(self, name: str) -> bool:
        """Whether it has rows, columns and channels, the channels second."""
        return name in self._images and len(self._values.shape(name)) >= 4

    def __getitem__(self, name: str) -> tuple[int, int, int, int]:
        shape = self._values.shape(name)
        if self.is_image(name):
            return shape[0], shape[2], math.prod(shape[3:]), shape[1]
        if len(shape) >= 3:
            return math.prod(shape[:-3]), shape[-2], shape[-3] if len(shape) > 3 else 1, shape[-1]
        return 1, shape[0] if len(shape) == 2 else 1, 1, shape[-1] if shape else 1


def _stage(node: onnx.NodeProto, values: Values, shapes: _Shapes) -> Stage:
    return Stage(
        name=node.name,
        op_type=node.op_type,
        reads={name: _window(node, name, values, shapes) for name in values.data(node)},
        makes=tuple(name for name in node.output if name),
        weight_bytes=_weights(node, values),
    )


def _is_wide(stage: Stage) -> bool:
    return stage.op_type in ("MatMul", "Gemm") and stage.weight_bytes >= _WIDE


def _value(name: str, values: Values, shapes: _Shapes, copies: int) -> Value:
    batch, rows, columns, channels = shapes[name]
    elements = batch * rows * columns * _up(channels, _CHANNELS)
    if rows > 1 and columns > 1:
        elements = batch * _up(rows, ROWS) * _up(columns, _COLUMNS) * _up(channels, _CHANNELS)
    elif rows > 1 and len(values.shape(name)) == 3:
        elements *= copies
    return Value(name, values.bytes(name), math.ceil(elements * values.bits(name) / 8), max(1, rows))


def _window(node: onnx.NodeProto, name: str, values: Values, shapes: _Shapes) -> Window:
    given, made = shapes[name], shapes[node.output[0]]
    ratio = given[1] / max(1, made[1])
    if node.op_type in _OF_WINDOWS and shapes.is_image(name):
        kernel, before = _kernel(node, values)
        if node.op_type == "ConvTranspose":
            return Window(ratio, max(1, math.ceil(kernel * ratio)))
        return Window(ratio, kernel, before)
    if node.op_type in _ROW_BY_ROW and shapes.is_image(name):
        return Window(ratio, max(1, math.ceil(ratio)))
    if node.op_type == "Resize":
        return Window(ratio, math.ceil(ratio) + 1)
    is_left = node.op_type in ("MatMul", "Gemm") and values.root(node.input[0]) == name
    is_element = node.op_type in _ELEMENTWISE and given[1] == made[1]
    return Window(whole=made[1] <= 1 or not (is_left or is_element))


def _kernel(node: onnx.NodeProto, values: Values) -> tuple[int, int]:
    """Rows of a window, gaps included, and rows of padding before the first."""
    lists = {entry.name: list(entry.ints) for entry in node.attribute}
    shape = lists.get("kernel_shape") or list(values.shape(node.input[1]))[2:]
    rows = (shape[0] - 1) * lists.get("dilations", [1])[0] + 1
    return rows, lists.get("pads", [(rows - 1) // 2])[0]


_OF_WINDOWS = {"Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool"}
_OF_IMAGES = {
    *("Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LpPool", "Resize"),
    *("DepthToSpace", "SpaceToDepth", "InstanceNormalization", "BatchNormalization", "PRelu"),
}
_OF_ROWS = {"MatMul", "Gemm", "Transpose"}
_ROW_BY_ROW = {"Concat", "Split", "DepthToSpace", "SpaceToDepth"}
_ELEMENTWISE = {
    *(
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Min",
        "Max",
        "Pow",
        "Where",
        "PRelu",
        "Relu",
        "Clip",
        "Sigmoid",
        "Tanh",
        "HardSwish",
    ),
    *("HardSigmoid", "Gelu", "LeakyRelu", "Elu", "Sqrt", "Softmax", "LayerNormalization", "BatchNormalization", "Exp"),
    *("Pad", "Slice", "Abs", "Neg", "Erf", "RMSNormalization", "LpNormalization"),
}


def _weights(node: onnx.NodeProto, values: Values) -> int:
    total = 0
    for name in values.constants(node) if reads_whole_constant(node.op_type) else ():
        shape = values.shape(name)
        width = values.bits(name) / 8
        if len(shape) >= 3 and node.op_type == "Conv":
            taps, depth = math.prod(shape[2:]), shape[1]
            columns = _up(shape[0], _CHANNELS)
            folded = _up(taps * depth, _CHANNELS)
            total += math.ceil(columns * min(folded, taps * _up(depth, _CHANNELS)) * width)
        elif len(shape) >= 3:
            total += math.ceil(_up(shape[0], _CHANNELS) * math.prod(shape[2:]) * _up(shape[1], _CHANNELS) * width)
        elif len(shape) == 2:
            total += math.ceil(_up(shape[0], _CHANNELS) * _up(shape[1], _CHANNELS) * width)
        else:
            total += math.ceil(math.prod(shape) * width)
    return total


def _up(size: int, block: int) -> int:
    return -(-size // block) * block
