"""Seeded graphs of blocks that real networks are made of, and of operators that the HTP may lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS, SIZE = 8, 16


class Graph:
    """A chain of blocks over an image; each block returns one of the same shape, (1, 8, size, size)."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[TensorProto] = []
        self.size = SIZE

    def c(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def w(self, *shape: int) -> str:
        return self.c(self.random.uniform(-0.5, 0.5, shape))

    def positive(self, *shape: int) -> str:
        return self.c(self.random.uniform(0.5, 1.5, shape))

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        made = [f"t{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), made, f"{op_type}_{len(self.nodes)}", **attributes))
        return made[0]

    def ints(self, *values: int) -> str:
        return self.c(values, np.int64)

    def choose(self, *values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    def rows(self, x: str) -> str:
        """(1, size x size, 8)"""
        return self.op("Transpose", self.op("Reshape", x, self.ints(1, CHANNELS, -1)), perm=[0, 2, 1])

    def image(self, x: str) -> str:
        moved = self.op("Transpose", x, perm=[0, 2, 1])
        return self.op("Reshape", moved, self.ints(1, CHANNELS, self.size, self.size))


Block = Callable[[Graph, str], str]


def conv(g: Graph, x: str) -> str:
    kernel = g.choose(1, 3)
    x = g.op("Conv", x, g.w(CHANNELS, CHANNELS, kernel, kernel), pads=[kernel // 2] * 4)
    if g.choose(True, False):
        x = g.op("BatchNormalization", x, g.positive(8), g.w(8), g.w(8), g.positive(8))
    return g.op(g.choose("Relu", "Sigmoid", "HardSwish", "LeakyRelu", "Tanh"), x)


def depthwise(g: Graph, x: str) -> str:
    kernel = g.choose(1, 3)
    return g.op("Conv", x, g.w(CHANNELS, 1, kernel, kernel), pads=[kernel // 2] * 4, group=CHANNELS)


def residual(g: Graph, x: str) -> str:
    return g.op(g.choose("Add", "Mul", "Max"), x, conv(g, x))


def pool(g: Graph, x: str) -> str:
    return g.op(g.choose("MaxPool", "AveragePool"), x, kernel_shape=[3, 3], pads=[1] * 4)


def dilated_pool(g: Graph, x: str) -> str:
    return g.op("MaxPool", x, kernel_shape=[2, 2], dilations=[2, 2], pads=[1] * 4)


def resize(g: Graph, x: str) -> str:
    mode = g.choose("nearest", "nearest", "linear", "cubic")
    attributes = {"mode": mode, "coordinate_transformation_mode": g.choose("half_pixel", "asymmetric", "align_corners")}
    if mode == "nearest":
        attributes["nearest_mode"] = g.choose("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    x = g.op("Resize", x, "", g.c([1, 1, 2, 2]), **attributes)
    return g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])


def antialias(g: Graph, x: str) -> str:
    x = g.op("Resize", x, "", g.c([1, 1, 0.5, 0.5]), mode="linear", antialias=1)
    return g.op("Resize", x, "", g.c([1, 1, 2, 2]), mode="linear")


def gelu(g: Graph, x: str) -> str:
    inner = g.op("Add", g.op("Erf", g.op("Div", x, g.c(2**0.5))), g.c(1))
    return g.op("Mul", g.op("Mul", x, inner), g.c(0.5))


def channel_pad(g: Graph, x: str) -> str:
    x = g.op("Pad", x, g.ints(0, 0, 0, 0, 0, 8, 0, 0))
    return g.op("Conv", x, g.w(CHANNELS, 2 * CHANNELS, 1, 1))


def border(g: Graph, x: str) -> str:
    x = g.op("Pad", x, g.ints(0, 0, 1, 1, 0, 0, 1, 1), mode=g.choose("reflect", "edge", "constant"))
    return g.op("Conv", x, g.w(CHANNELS, CHANNELS, 3, 3))


def attention(g: Graph, x: str) -> str:
    rows = g.rows(x)
    query, key, value = (g.op("MatMul", rows, g.w(CHANNELS, CHANNELS)) for _ in range(3))
    weights = g.op("Softmax", g.op("MatMul", query, g.op("Transpose", key, perm=[0, 2, 1])), axis=-1)
    return g.image(g.op("MatMul", weights, value))


def layernorm(g: Graph, x: str) -> str:
    return g.image(g.op("LayerNormalization", g.rows(x), g.positive(CHANNELS), g.w(CHANNELS)))


def wide_layernorm(g: Graph, x: str) -> str:
    shape = (CHANNELS, g.size, g.size)
    return g.op("LayerNormalization", x, g.positive(*shape), g.w(*shape), axis=1)


def recurrent(g: Graph, x: str) -> str:
    kind = g.choose("LSTM", "GRU")
    gates = 4 if kind == "LSTM" else 3
    rows = g.op("Reshape", g.op("GlobalAveragePool", x), g.ints(1, 1, CHANNELS))
    y = g.op(kind, rows, g.w(1, gates * 8, 8), g.w(1, gates * 8, 8), hidden_size=8)
    return g.op("Add", x, g.op("Reshape", y, g.ints(1, CHANNELS, 1, 1)))


def einsum(g: Graph, x: str) -> str:
    return g.op("Einsum", x, g.w(CHANNELS, CHANNELS), equation="bchw,cd->bdhw")


def shuffle(g: Graph, x: str) -> str:
    x = g.op("Reshape", x, g.ints(1, 2, CHANNELS // 2, g.size, g.size))
    return g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3, 4]), g.ints(1, CHANNELS, g.size, g.size))


def windows(g: Graph, x: str) -> str:
    half = g.size // 2
    x = g.op("Reshape", x, g.ints(1, CHANNELS, 2, half, 2, half))
    x = g.op("Transpose", x, perm=[0, 2, 4, 1, 3, 5])
    x = g.op("Transpose", x, perm=[0, 3, 1, 4, 2, 5])
    return g.op("Reshape", g.op("Relu", x), g.ints(1, CHANNELS, g.size, g.size))


def depth(g: Graph, x: str) -> str:
    return g.op("DepthToSpace", g.op("SpaceToDepth", x, blocksize=2), blocksize=2, mode=g.choose("DCR", "CRD"))


def sliced(g: Graph, x: str) -> str:
    first = g.op("Slice", x, g.ints(0), g.ints(4), g.ints(1))
    second = g.op("Slice", x, g.ints(4), g.ints(8), g.ints(1))
    return g.op("Concat", second, first, axis=1)


def reduced(g: Graph, x: str) -> str:
    kind = g.choose("ReduceMean", "ReduceMax", "ReduceSum", "ReduceL2", "ReduceL1", "ReduceSumSquare", "ReduceProd")
    return g.op("Mul", x, g.op("Tanh", g.op(kind, x, g.ints(2, 3))))


def odd(g: Graph, x: str) -> str:
    """An operator that the HTP may lack, on values between 0 and 1."""
    kinds = ("Erf", "Atanh", "Sinh", "Cosh", "Softsign", "Celu", "Shrink", "Mish", "Hardmax", "Asinh", "Acos")
    return g.op(g.choose(*kinds), g.op("Mul", g.op("Sigmoid", x), g.c(0.5)))


def known(g: Graph, x: str) -> str:
    kinds = ("Abs", "Ceil", "Cos", "Elu", "Exp", "Floor", "Neg", "Round", "Selu", "Sign", "Sin", "Softplus", "Sqrt")
    return g.op(g.choose(*kinds), g.op("Sigmoid", x))


def normalized(g: Graph, x: str) -> str:
    kind = g.choose("InstanceNormalization", "LpNormalization", "LRN", "Softmax", "LogSoftmax")
    if kind == "InstanceNormalization":
        return g.op(kind, x, g.positive(CHANNELS), g.w(CHANNELS))
    return g.op(kind, x, **({"size": 3} if kind == "LRN" else {"axis": 1}))


def upsample(g: Graph, x: str) -> str:
    x = g.op("ConvTranspose", x, g.w(CHANNELS, CHANNELS, 2, 2), strides=[2, 2])
    x = g.op("Add", x, g.w(CHANNELS, 1, 1))
    return g.op("AveragePool", x, kernel_shape=[2, 2], strides=[2, 2])


def gathered(g: Graph, x: str) -> str:
    return g.op("Gather", x, g.ints(*g.random.permutation(CHANNELS)), axis=1)


def chosen(g: Graph, x: str) -> str:
    above = g.op(g.choose("Greater", "Less", "GreaterOrEqual"), x, g.c(0.1))
    return g.op("Where", above, x, g.op("Neg", x))


def sampled(g: Graph, x: str) -> str:
    """GridSample at the positions that a convolution gives."""
    grid = g.op("Transpose", g.op("Tanh", g.op("Conv", x, g.w(2, CHANNELS, 1, 1))), perm=[0, 2, 3, 1])
    return g.op("GridSample", x, grid, mode=g.choose("linear", "nearest", "cubic"))


def dilated(g: Graph, x: str) -> str:
    """A dilated convolution; with strides the compiler refuses some."""
    dilation, stride, group = g.choose(2, 3), g.choose(1, 2), g.choose(1, CHANNELS)
    weights = g.w(CHANNELS, CHANNELS // group, 3, 3)
    spread = {"dilations": [dilation] * 2, "strides": [stride] * 2, "pads": [dilation] * 4}
    x = g.op("Conv", x, weights, group=group, **spread)
    if stride == 1:
        return x
    return g.op(
        "Resize",
        x,
        "",
        g.c([1, 1, 2, 2]),
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


def picked(g: Graph, x: str) -> str:
    """The value of the best channel, by one of the ways to write it."""
    kind = g.choose("TopK", "ArgMax", "ReduceMax")
    if kind == "TopK":
        return g.op("Add", x, g.op(kind, x, g.ints(1), outputs=2, axis=1))
    best = g.op(kind, x, axis=1) if kind == "ArgMax" else g.op(kind, x, g.ints(1))
    return g.op("Add", x, g.op("Cast", best, to=TensorProto.FLOAT) if kind == "ArgMax" else best)


def clipped(g: Graph, x: str) -> str:
    slope = g.positive(CHANNELS, 1, 1)
    return g.op("PRelu", g.op("Clip", x, g.c(-1.0), g.c(1.0)), slope)


def mixed(g: Graph, x: str) -> str:
    """A layer over the channels of each position, by the operator that holds its weights."""
    rows = g.op("Reshape", g.rows(x), g.ints(-1, CHANNELS))
    rows = g.op("Gemm", rows, g.w(CHANNELS, CHANNELS), g.w(CHANNELS), transB=g.choose(0, 1))
    return g.image(g.op("Reshape", rows, g.ints(1, -1, CHANNELS)))


PLAIN: tuple[Block, ...] = (
    *(conv, depthwise, residual, pool, resize, gelu, channel_pad, border, attention, layernorm, einsum, shuffle, depth),
    *(sliced, known, normalized, upsample, gathered, chosen, recurrent, clipped, mixed),
)
HARD: tuple[Block, ...] = (odd, reduced, dilated_pool, antialias, wide_layernorm, windows, sampled, dilated, picked)


# What a network may end with; the size of what it makes is the model's own.
ENDS: tuple[Callable[[Graph, str], Any], ...] = (
    lambda _, x: x,
    lambda g, x: g.op("Sigmoid", x),
    lambda g, x: g.op("Transpose", x, perm=[0, 2, 3, 1]),
    lambda g, x: g.op("Reshape", x, g.ints(1, -1)),
    lambda g, x: g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 3, 1]), g.ints(1, -1, 4)),
    lambda g, x: g.op("Flatten", g.op("GlobalAveragePool", x)),
    lambda g, x: g.op("Reshape", g.op("ReduceMax", x, g.ints(1)), g.ints(1, g.size, g.size, 1)),
    lambda g, x: g.op("Softmax", x, axis=1),
)


def make(seed: int) -> onnx.ModelProto:
    """Three to seven blocks; one of the HARD in two of three graphs."""
    g = Graph(seed)
    blocks: list[Block] = [g.choose(*PLAIN) for _ in range(int(g.random.integers(3, 8)))]
    if seed % 3:
        blocks[int(g.random.integers(len(blocks)))] = g.choose(*HARD)
    x = "x"
    for block in blocks:
        x = block(g, x)
    ENDS[int(g.random.integers(len(ENDS)))](g, g.op("Conv", x, g.w(4, CHANNELS, 1, 1)))
    graph = helper.make_graph(
        g.nodes,
        "made",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, CHANNELS, SIZE, SIZE])],
        [helper.make_tensor_value_info(g.nodes[-1].output[0], TensorProto.FLOAT, None)],
        g.constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
