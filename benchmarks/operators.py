"""Which operators the HTP takes, by architecture and precision: `python benchmarks/operators.py [--archs v75]`.

Each case is a graph of one operator (some need a second one to make their input). It is quantized as a build does it
and compiled; the compiler's verdict on that node goes into anfbuild/graph/constraints/operators.json, which `lint`
reads. Many cases share one compile; where a compile fails, they are halved until the one at fault stands alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import AnfbuildError
from anfbuild.graph import serialize
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.options import Options
from anfbuild.quantization.quantize import quantize
from anfbuild.quantization.statistics import collect
from anfbuild.soc import ARCHITECTURES, default_soc

TABLE = Path(__file__).parents[1] / "anfbuild" / "graph" / "constraints" / "operators.json"
PRECISIONS = ("int8", "int8_per_channel", "a16w8", "a16w8_per_channel", "a16w16", "float")
OPSET = 20
_BATCH = 24
"""Cases in one compile."""


class Graph:
    """Builds the graphs of cases side by side in one model."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.constants: list[TensorProto] = []
        self.outputs: list[str] = []
        self.prefix = ""
        self._random = np.random.default_rng(0)

    def x(self, *shape: int) -> str:
        """A value in the midst of a network: the HTP makes it."""
        name = f"{self.prefix}x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))
        return self.op("Sigmoid", name)

    def c(self, value: Any, dtype: Any = None) -> str:
        name = f"{self.prefix}c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def w(self, *shape: int) -> str:
        return self.c(self._random.uniform(0.2, 1.0, shape), np.float32)

    def op(self, op_type: str, *inputs: str, outputs: int = 1, name: str = "", **attributes: Any) -> str:
        made = [f"{self.prefix}t{len(self.nodes)}_{index}" for index in range(outputs)]
        name = name or f"{self.prefix}n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), made, name=name, **attributes))
        return made[0]

    def is_float(self, name: str) -> bool:
        """Whether a value is float32, going by the operators' own types."""
        outputs = self.outputs
        self.outputs = [name]
        kind = self.model().graph.output[0].type.tensor_type.elem_type
        self.outputs = outputs
        return bool(kind == TensorProto.FLOAT)

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "cases", self.inputs, [], self.constants)
        for name in self.outputs:
            graph.output.add(name=name)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
        inferred: onnx.ModelProto = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
        return inferred


Build = Callable[[Graph], str]
"""Adds the nodes that make the inputs; the operator itself is the one that it adds last."""


@dataclass(frozen=True)
class Case:
    """An operator, the attributes that set it apart from the plain one, and the rank of its first input."""

    op_type: str
    build: Build
    attributes: dict[str, Any] = field(default_factory=dict)
    rank: int | None = None
    computed: int | None = None
    """Number of the input that is computed, where the plain form has a constant."""
    note: str = ""
    """What else sets it apart: `lint` has a rule of its own for it, and does not look it up."""


def plain(op_type: str, *shape: int, constants: Sequence[Any] = (), outputs: int = 1, **attributes: Any) -> Build:
    """The operator on one float input, and constants."""

    def build(g: Graph) -> str:
        return g.op(op_type, g.x(*shape), *(g.c(c) for c in constants), outputs=outputs, **attributes)

    return build


def two(op_type: str, *shape: int, other: Sequence[int] | None = None, **attributes: Any) -> Build:
    return lambda g: g.op(op_type, g.x(*shape), g.x(*(other or shape)), **attributes)


def logical(op_type: str) -> Build:
    """An operator on truth values."""

    def build(g: Graph) -> str:
        a = g.op("Greater", g.x(1, 8, 4, 4), g.x(1, 8, 4, 4))
        b = [] if op_type == "Not" else [g.op("Greater", g.x(1, 8, 4, 4), g.x(1, 8, 4, 4))]
        return g.op(op_type, a, *b)

    return build


def conv(rank: int, kernel: int = 3, computed: bool = False, **attributes: Any) -> Build:
    def build(g: Graph) -> str:
        size = [8] * (rank - 2)
        weights = [16, 8 // attributes.get("group", 1), *[kernel] * (rank - 2)]
        return g.op("Conv", g.x(1, 8, *size), g.x(*weights) if computed else g.w(*weights), **attributes)

    return build


def subgraph(g: Graph, op_type: str) -> str:
    """If and Loop around a Relu, Scan around an Add."""
    shape = [1, 8]
    x = g.x(*shape)
    inner = f"{g.prefix}inner"

    def value(name: str, kind: int = TensorProto.FLOAT, dims: Sequence[int] = (1, 8)) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(f"{inner}{name}", kind, dims)

    if op_type == "If":
        first = g.op(
            "Slice", g.op("Greater", x, g.c(0.5, np.float32)), *(g.c(v, np.int64) for v in ([0, 0], [1, 1], [0, 1]))
        )
        condition = g.op("Reshape", first, g.c([1]))
        branches = {
            f"{which}_branch": helper.make_graph(
                [helper.make_node(kind, [x], [f"{inner}{which}"], name=f"{inner}{which}n")], which, [], [value(which)]
            )
            for which, kind in (("then", "Relu"), ("else", "Sigmoid"))
        }
        return g.op("If", condition, **branches)
    nodes = [
        helper.make_node("Identity", [f"{inner}go"], [f"{inner}on"]),
        helper.make_node("Relu", [f"{inner}v"], [f"{inner}r"]),
    ]
    ins = [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v")]
    body = helper.make_graph(nodes, "body", ins, [value("on", TensorProto.BOOL, []), value("r")])
    return g.op("Loop", g.c(3, np.int64), g.c(True), x, body=body)


def recurrent(op_type: str) -> Build:
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[op_type]
    return lambda g: g.op(op_type, g.x(5, 1, 8), g.w(1, gates * 8, 8), g.w(1, gates * 8, 8), hidden_size=8)


def resize(mode: str, coordinates: str, scale: float = 2.0, nearest: str = "", **more: Any) -> Case:
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinates, **more}
    attributes |= {"nearest_mode": nearest} if nearest else {}

    def build(g: Graph) -> str:
        return g.op("Resize", g.x(1, 8, 8, 8), "", g.c([1, 1, scale, scale], np.float32), **attributes)

    return Case("Resize", build, attributes, note="" if scale == 2.0 else f"scale {scale}")


_SAME = (1, 8, 8, 8)
_UNARY = (
    *("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Elu", "Erf", "Exp", "Floor"),
    *("Gelu", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg"),
    *("Reciprocal", "Relu", "Round", "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign"),
    *("Sqrt", "Tan", "Tanh", "ThresholdedRelu", "Celu", "Shrink", "IsNaN", "IsInf", "GlobalAveragePool"),
    *("GlobalMaxPool", "GlobalLpPool", "LpNormalization", "MeanVarianceNormalization", "ArgMax", "ArgMin", "NonZero"),
    *("Flatten", "Dropout", "Trilu", "Bernoulli", "Shape", "Size", "Det"),
)
_BINARY = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum", "Equal", "Greater", "GreaterOrEqual", "Less"),
    *("LessOrEqual", "MatMul"),
)
_REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
)


def cases() -> Iterator[Case]:
    """Every case of the table."""
    axes = np.array([2, 3])
    for name in _UNARY:
        if name not in ("Trilu", "Det"):
            yield Case(name, plain(name, *_SAME))
    yield Case("Trilu", plain("Trilu", 8, 8))
    yield Case("Det", plain("Det", 1, 4, 4))
    yield from (Case(name, two(name, *_SAME)) for name in _BINARY)
    yield from (Case(name, plain(name, *_SAME, constants=[axes])) for name in _REDUCTIONS)
    yield from (Case(name, logical(name)) for name in ("And", "Or", "Xor", "Not"))
    yield from (Case(name, recurrent(name)) for name in ("LSTM", "GRU", "RNN"))
    yield from (Case(name, lambda g, n=name: subgraph(g, n)) for name in ("If", "Loop"))
    yield Case("Softmax", plain("Softmax", *_SAME, axis=1), {"axis": 1})
    yield Case("Mod", lambda g: g.op("Mod", g.x(*_SAME), g.x(*_SAME), fmod=1), {"fmod": 1})
    yield Case(
        "Mod",
        lambda g: g.op("Mod", g.op("Cast", g.x(*_SAME), to=TensorProto.INT32), g.c(3, np.int32)),
        {"fmod": 0},
    )
    yield from _convolutions()
    yield from _pools()
    yield from _movements()
    yield from _normalizations()
    yield from _resizes()
    yield from _others()


def _convolutions() -> Iterator[Case]:
    yield Case("Conv", conv(4))
    yield Case("Conv", conv(3), rank=3)
    yield Case("Conv", conv(5), rank=5)
    yield Case("Conv", conv(4, group=8), note="depthwise")
    yield Case("Conv", conv(4, computed=True), computed=1)
    yield Case("Conv", conv(4, dilations=[2, 2], pads=[2] * 4), note="dilated")
    for rank in (4, 3, 5):
        yield Case(
            "ConvTranspose",
            lambda g, r=rank: g.op(
                "ConvTranspose", g.x(1, 8, *[8] * (r - 2)), g.w(8, 16, *[2] * (r - 2)), strides=[2] * (r - 2)
            ),
            rank=None if rank == 4 else rank,
        )
    yield Case("Gemm", lambda g: g.op("Gemm", g.x(4, 8), g.w(8, 16), g.w(16)))
    yield Case("Gemm", lambda g: g.op("Gemm", g.x(8, 4), g.w(8, 16), transA=1), {"transA": 1})
    yield Case("MatMul", lambda g: g.op("MatMul", g.x(1, 4, 8), g.w(8, 16)), note="constant weights")
    yield Case("DeformConv", lambda g: g.op("DeformConv", g.x(1, 8, 8, 8), g.w(8, 8, 3, 3), g.x(1, 18, 6, 6)))
    for equation, shapes in (
        ("bhwc,hkc->bhwk", [(1, 4, 4, 8), (4, 6, 8)]),
        ("bij,bjk->bik", [(1, 4, 8), (1, 8, 4)]),
        ("bhid,bhjd->bhij", [(1, 2, 4, 8), (1, 2, 4, 8)]),
    ):
        yield Case(
            "Einsum",
            lambda g, e=equation, s=shapes: g.op("Einsum", *(g.x(*shape) for shape in s), equation=e),
            {"equation": equation},
        )
    yield Case("Einsum", lambda g: g.op("Einsum", g.x(4, 8), g.x(4, 8), equation="ij,ij->i"))


def _pools() -> Iterator[Case]:
    for name in ("AveragePool", "MaxPool", "LpPool"):
        for rank in (4, 3, 5):
            kernel = [2] * (rank - 2)
            build = plain(name, 1, 8, *[8] * (rank - 2), kernel_shape=kernel, strides=kernel)
            yield Case(name, build, rank=None if rank == 4 else rank)
    yield Case("MaxPool", plain("MaxPool", *_SAME, kernel_shape=[2, 2], ceil_mode=1, strides=[3, 3]), {"ceil_mode": 1})
    yield Case("MaxPool", plain("MaxPool", *_SAME, kernel_shape=[2, 2], dilations=[2, 2]), {"dilations": [2, 2]})
    yield Case("MaxUnpool", _unpool)
    yield Case(
        "MaxRoiPool",
        lambda g: g.op("MaxRoiPool", g.x(*_SAME), g.c([[0, 1, 1, 6, 6]], np.float32), pooled_shape=[2, 2]),
    )
    yield Case(
        "RoiAlign",
        lambda g: g.op(
            "RoiAlign",
            *(g.x(*_SAME), g.c([[1, 1, 6, 6]], np.float32), g.c([0], np.int64)),
            output_height=2,
            output_width=2,
        ),
    )


def _unpool(g: Graph) -> str:
    pooled = g.op("MaxPool", g.x(*_SAME), outputs=2, kernel_shape=[2, 2], strides=[2, 2])
    return g.op("MaxUnpool", pooled, pooled[:-1] + "1", kernel_shape=[2, 2], strides=[2, 2])


def _movements() -> Iterator[Case]:
    yield Case("Reshape", plain("Reshape", *_SAME, constants=[np.array([1, 8, 64])]))
    yield Case("Squeeze", plain("Squeeze", *_SAME, constants=[np.array([0])]))
    yield Case("Unsqueeze", plain("Unsqueeze", 1, 8, 8, constants=[np.array([0])]))
    yield Case("Transpose", plain("Transpose", *_SAME, perm=[0, 2, 3, 1]))
    yield Case("Transpose", plain("Transpose", 1, 2, 4, 8, 4, 2, perm=[0, 2, 4, 1, 3, 5]), rank=6)
    yield Case("DepthToSpace", plain("DepthToSpace", *_SAME, blocksize=2))
    yield Case("DepthToSpace", plain("DepthToSpace", *_SAME, blocksize=2, mode="CRD"), {"mode": "CRD"})
    yield Case("SpaceToDepth", plain("SpaceToDepth", *_SAME, blocksize=2))
    yield Case("Concat", two("Concat", *_SAME, axis=1))
    yield Case("Split", plain("Split", *_SAME, constants=[np.array([4, 4])], outputs=2, axis=1))
    ranges = [np.array([v]) for v in (1, 7, 2, 1)]
    yield Case("Slice", plain("Slice", *_SAME, constants=ranges))
    backward = [np.array([v]) for v in (7, -9, 2, -1)]
    yield Case("Slice", plain("Slice", *_SAME, constants=backward), note="backwards")
    yield Case("Expand", plain("Expand", 1, 8, 1, 1, constants=[np.array([1, 8, 4, 4])]))
    yield Case("Tile", plain("Tile", *_SAME, constants=[np.array([1, 1, 2, 2])]))
    index = np.array([0, 2], np.int64)
    yield Case("Gather", plain("Gather", *_SAME, constants=[index], axis=1))
    yield Case("Gather", _computed_gather, computed=1)
    yield Case("GatherElements", plain("GatherElements", 4, 8, constants=[np.zeros((4, 8), np.int64)], axis=1))
    yield Case("GatherND", plain("GatherND", 4, 8, constants=[np.array([[0, 1], [2, 3]])]))
    for reduction in ("none", "add", "mul", "max", "min"):
        attributes = {} if reduction == "none" else {"reduction": reduction}
        yield Case(
            "ScatterND",
            lambda g, a=attributes: g.op("ScatterND", g.x(4, 8), g.c([[0], [2]], np.int64), g.x(2, 8), **a),
            attributes,
        )
        yield Case(
            "ScatterElements",
            lambda g, a=attributes: g.op("ScatterElements", g.x(4, 8), g.c(np.zeros((1, 8), np.int64)), g.x(1, 8), **a),
            attributes,
        )
    for mode in ("constant", "reflect", "edge", "wrap"):
        attributes = {"mode": mode}
        yield Case(
            "Pad",
            lambda g, a=attributes: g.op("Pad", g.x(*_SAME), g.c([0, 0, 1, 1, 0, 0, 1, 1], np.int64), **a),
            attributes,
        )
    yield Case("TopK", lambda g: g.op("TopK", g.x(1, 64), g.c([5], np.int64), outputs=2))
    yield Case("TopK", lambda g: g.op("TopK", g.x(1, 64), g.c([5], np.int64), outputs=2, largest=0), {"largest": 0})
    yield Case("TopK", lambda g: g.op("TopK", g.x(8, 64), g.c([5], np.int64), outputs=2, axis=0), {"axis": 0})
    yield Case("CumSum", lambda g: g.op("CumSum", g.x(*_SAME), g.c(1, np.int64)))
    yield Case("ReverseSequence", lambda g: g.op("ReverseSequence", g.x(8, 4), g.c([3, 4, 8, 1], np.int64)))
    yield Case("Compress", lambda g: g.op("Compress", g.x(4, 8), g.c([True, False, True, True]), axis=0))
    yield Case("CenterCropPad", plain("CenterCropPad", *_SAME, constants=[np.array([4, 4])], axes=[2, 3]))
    yield Case("Col2Im", plain("Col2Im", 1, 32, 16, constants=[np.array([8, 8]), np.array([2, 2])], strides=[2, 2]))


def _computed_gather(g: Graph) -> str:
    best = g.op("ArgMax", g.x(4, 8), axis=1, keepdims=0)
    return g.op("Gather", g.x(8, 16), best)


def _normalizations() -> Iterator[Case]:
    yield Case(
        "BatchNormalization",
        lambda g: g.op("BatchNormalization", g.x(*_SAME), *(g.w(8) for _ in range(4))),
    )
    yield Case("InstanceNormalization", lambda g: g.op("InstanceNormalization", g.x(*_SAME), g.w(8), g.w(8)))
    yield Case("LayerNormalization", lambda g: g.op("LayerNormalization", g.x(1, 8, 64), g.w(64), g.w(64)))
    yield Case(
        "LayerNormalization",
        lambda g: g.op("LayerNormalization", g.x(1, 8, 4, 8), g.w(8, 4, 8), g.w(8, 4, 8), axis=1),
        {"axis": 1},
    )
    yield Case("GroupNormalization", lambda g: g.op("GroupNormalization", g.x(*_SAME), g.w(4), g.w(4), num_groups=4))
    yield Case("LRN", plain("LRN", *_SAME, size=3))


def _resizes() -> Iterator[Case]:
    for coordinates in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        for nearest in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            yield resize("nearest", coordinates, nearest=nearest)
        yield resize("linear", coordinates)
        yield resize("cubic", coordinates)
    yield resize("linear", "half_pixel", antialias=1)
    yield resize("linear", "half_pixel", scale=0.5)
    yield Case(
        "Upsample",
        lambda g: g.op("Resize", g.x(*_SAME), "", g.c([1, 1, 2, 2], np.float32), mode="nearest"),
        note="as Resize",
    )
    for mode in ("linear", "nearest", "cubic"):
        yield Case(
            "GridSample",
            lambda g, m=mode: g.op("GridSample", g.x(*_SAME), g.x(1, 4, 4, 2), mode=m),
            {"mode": mode},
        )
    yield Case("AffineGrid", lambda g: g.op("AffineGrid", g.x(1, 2, 3), g.c([1, 8, 4, 4], np.int64)))


def _others() -> Iterator[Case]:
    yield Case("Clip", plain("Clip", *_SAME, constants=[np.float32(0), np.float32(6)]))
    yield Case("PRelu", lambda g: g.op("PRelu", g.x(*_SAME), g.w(8, 1, 1)))
    yield Case("Where", lambda g: g.op("Where", g.op("Greater", g.x(*_SAME), g.x(*_SAME)), g.x(*_SAME), g.x(*_SAME)))
    yield Case("Cast", plain("Cast", *_SAME, to=TensorProto.INT32), {"to": int(TensorProto.INT32)})
    yield Case("Cast", plain("Cast", *_SAME, to=TensorProto.INT64), {"to": int(TensorProto.INT64)})
    yield Case("Cast", plain("Cast", *_SAME, to=TensorProto.BOOL), {"to": int(TensorProto.BOOL)})
    yield Case("Cast", lambda g: g.op("Cast", g.op("ArgMax", g.x(4, 8)), to=TensorProto.FLOAT), {"to": 1})
    yield Case(
        "OneHot",
        lambda g: g.op("OneHot", g.op("ArgMax", g.x(4, 8), keepdims=0), g.c(8, np.int64), g.c([0, 1], np.float32)),
    )
    yield Case(
        "NonMaxSuppression",
        lambda g: g.op("NonMaxSuppression", g.x(1, 16, 4), g.x(1, 1, 16), g.c([4], np.int64)),
    )
    yield Case(
        "Range",
        lambda g: g.op("Range", g.c(0.0, np.float32), g.op("ReduceMax", g.x(4), keepdims=0), g.c(1.0, np.float32)),
    )
    yield Case("EyeLike", plain("EyeLike", 4, 4))
    yield Case("RandomNormalLike", plain("RandomNormalLike", 4, 4))
    yield Case("RandomUniformLike", plain("RandomUniformLike", 4, 4))
    yield Case("Multinomial", plain("Multinomial", 1, 8))
    yield Case("Unique", plain("Unique", 16))
    yield Case("DFT", plain("DFT", 1, 16, 1))
    yield Case("STFT", lambda g: g.op("STFT", g.x(1, 64, 1), g.c(16, np.int64), g.w(16)))
    yield Case(
        "BitShift",
        lambda g: g.op("BitShift", g.op("Cast", g.x(4), to=TensorProto.UINT8), g.c([1], np.uint8), direction="LEFT"),
    )
    for name in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        yield Case(name, lambda g, n=name: g.op(n, g.op("Cast", g.x(4, 8), to=TensorProto.INT32), g.c([3], np.int32)))
    yield Case("BitwiseNot", lambda g: g.op("BitwiseNot", g.op("Cast", g.x(4, 8), to=TensorProto.INT32)))
    yield Case(
        "ConstantOfShape",
        lambda g: g.op(
            "ConstantOfShape",
            g.op("Cast", g.op("Clip", g.x(2), g.c(1, np.float32), g.c(2, np.float32)), to=TensorProto.INT64),
        ),
    )
    yield Case(
        "MatMulInteger",
        lambda g: g.op("MatMulInteger", g.op("Cast", g.x(4, 8), to=TensorProto.UINT8), g.c(np.ones((8, 4)), np.uint8)),
    )
    yield Case(
        "ConvInteger",
        lambda g: g.op(
            "ConvInteger", g.op("Cast", g.x(*_SAME), to=TensorProto.UINT8), g.c(np.ones((4, 8, 3, 3)), np.uint8)
        ),
    )
    yield Case("DynamicQuantizeLinear", plain("DynamicQuantizeLinear", 4, 8, outputs=3))


Verdicts = dict[int, tuple[str, str]]
"""Number of a case -> (unit, the compiler's reason)."""


class Prober:
    """Asks the compiler about cases on one architecture in one precision."""

    def __init__(self, every: Sequence[Case], arch: str, precision: str) -> None:
        self._every, self._arch, self._precision = every, arch, precision

    def verdicts(self) -> Verdicts:
        found: Verdicts = {}
        known: list[int] = []
        for number in range(len(self._every)):
            try:
                self._model([number])
                known.append(number)
            except Exception as error:  # of onnxruntime, onnx or ours: nothing is left to ask the compiler
                case = self._every[number]
                print(f"  {case.op_type} {case.attributes} is not asked about: {_short(str(error))}")
        for start in range(0, len(known), _BATCH):
            found |= self._ask(known[start : start + _BATCH])
        return found

    def _model(self, numbers: Sequence[int]) -> onnx.ModelProto:
        g = Graph()
        for number in numbers:
            g.prefix = f"k{number}_"
            result = self._every[number].build(g)
            g.nodes[-1].name = f"case{number}"
            # The HTP reads it as well: what has no op of its own counts where its neighbours run.
            g.outputs.append(g.op("Neg", result) if g.is_float(result) else result)
        model = g.model()
        if self._precision == "float":
            return model
        random = np.random.default_rng(0)
        feeds = {
            value.name: random.uniform(0.1, 1.0, [d.dim_value for d in value.type.tensor_type.shape.dim]).astype(
                np.float32
            )
            for value in model.graph.input
        }
        return quantize(model, collect(model, [("sample", feeds)]), self._precision, "minmax")[0]

    def _ask(self, numbers: Sequence[int]) -> Verdicts:
        soc = default_soc(self._arch)
        try:
            with tempfile.TemporaryDirectory() as folder:
                built = compile_context(
                    serialize(self._model(numbers)), Options(soc.soc_model, soc.arch), Path(folder), timeout_s=300
                )
            units = {row.node: row for row in built.verdicts}
            return {n: (units[f"case{n}"].unit, _short(units[f"case{n}"].reason)) for n in numbers}
        except AnfbuildError as error:
            if len(numbers) == 1:
                nothing = "nothing of the model can run" in str(error)
                return {numbers[0]: ("CPU" if nothing else "refused", _short(str(error)))}
            middle = len(numbers) // 2
            return self._ask(numbers[:middle]) | self._ask(numbers[middle:])


def _short(text: str) -> str:
    """One line, without what names this compile."""
    line = " ".join(text.split())
    line = re.sub(r"the HTP compiler refused the model for \S+ \(v\d+\): |node case\d+: ", "", line)
    line = re.sub(r"nothing of the model can run on the HTP of \S+ ", "", line)
    line = re.sub(r"on S\w+ \(v\d+\)", "on this chip", line)
    line = re.sub(r"(k\d+_\w+|case\d+)(_token_\d+)*", "the node", line)
    line = re.sub(r"(are not supported by QNN EP)\..*", r"\1", line)
    return re.sub(r"/\S*/", "", line)[:160]


ByArch = dict[str, dict[str, tuple[str, str]]]
"""Precision -> architecture -> (unit, reason)."""


@dataclass
class Row:
    """A case and what was found of it."""

    case: Case
    verdicts: ByArch

    def to_json(self) -> dict[str, Any]:
        grouped = {}
        for precision in sorted(self.verdicts):
            groups: dict[tuple[str, str], list[str]] = {}
            for arch, verdict in sorted(self.verdicts[precision].items()):
                groups.setdefault(verdict, []).append(arch)
            grouped[precision] = [[*verdict, " ".join(archs)] for verdict, archs in groups.items()]
        return {**described(self.case), "verdicts": grouped}


def described(case: Case) -> dict[str, Any]:
    """The case without its graph and what is not set."""
    fields = {
        "op_type": case.op_type,
        "attributes": case.attributes,
        "rank": case.rank,
        "computed": case.computed,
        "note": case.note,
    }
    return {name: value for name, value in fields.items() if value not in ({}, None, "")}


def identity(row: dict[str, Any]) -> str:
    """What tells one case from another."""
    return json.dumps([row.get(name) for name in ("op_type", "attributes", "rank", "computed", "note")])


def by_arch(verdicts: dict[str, list[list[str]]]) -> ByArch:
    """The verdicts of a row as `Row` has them."""
    return {
        precision: {arch: (unit, reason) for unit, reason, archs in groups for arch in archs.split()}
        for precision, groups in verdicts.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="operators, separated by commas")
    parser.add_argument("--archs", default=",".join(ARCHITECTURES))
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--table", type=Path, default=TABLE)
    arguments = parser.parse_args()
    only = set(filter(None, arguments.only.split(",")))
    every = [case for case in cases() if not only or case.op_type in only]
    pairs = [(arch, p) for arch in arguments.archs.split(",") for p in arguments.precisions.split(",")]
    kept = json.loads(arguments.table.read_text(encoding="utf-8"))["cases"] if arguments.table.is_file() else []
    found_before = {identity(row): by_arch(row["verdicts"]) for row in kept}
    rows = [Row(case, found_before.get(identity(described(case)), {})) for case in every]
    with ThreadPoolExecutor(arguments.jobs) as pool:
        for (arch, precision), found in zip(
            pairs, pool.map(lambda pair: Prober(every, *pair).verdicts(), pairs), strict=True
        ):
            for number, (unit, reason) in sorted(found.items()):
                rows[number].verdicts.setdefault(precision, {})[arch] = (unit, reason)
            counts = {unit: sum(v[0] == unit for v in found.values()) for unit in ("HTP", "CPU", "folded", "refused")}
            print(arch, precision, counts, flush=True)
            source = f"compiled with onnxruntime-qnn {version('onnxruntime-qnn')}"
            lines = ",\n".join(json.dumps(row.to_json()) for row in rows)
            text = f'{{"source": {json.dumps(source)}, "cases": [\n{lines}\n]}}\n'
            arguments.table.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
