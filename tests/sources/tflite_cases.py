"""Small models with one operator each, for the tests that compare them with numpy and with the reference interpreter.

Each is made twice: the operator reads the model's own inputs, and it reads what a convolution made of them that leaves
every number as it is, so that the values are held channels first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from tflite_files import File, Options

SHAPE = (1, 4, 6, 3)
INT = np.int32


@dataclasses.dataclass(frozen=True)
class Case:
    """`made` is the shape that comes out, `constants` follow the inputs, `expected` is the operator in numpy."""

    kind: str
    made: Sequence[int]
    expected: Callable[..., Any]
    constants: Sequence[np.ndarray] = ()
    options: Options = None
    inputs: int = 1
    dtype: Any = np.float32
    shape: Sequence[int] = SHAPE

    def __str__(self) -> str:
        return f"{self.kind}-{'-'.join(map(str, self.made))}-{self.inputs}"


def identity(file: File, value: int, shape: Sequence[int]) -> int:
    """What a 1x1 convolution makes of `value`: the same."""
    weights = file.constant(np.eye(shape[3]).reshape(shape[3], 1, 1, shape[3]))
    bias = file.constant(np.zeros(shape[3]))
    made = file.tensor(f"held{value}", shape)
    conv = {"Padding": 1, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    file.operator("CONV_2D", [value, weights, bias], [made], ("Conv2DOptions", conv))
    return made


def one_operator(case: Case, *, first: bool) -> bytes:
    """The file of a case; `first`: its inputs are held channels first."""
    file = File()
    own = [file.tensor(f"x{number}", case.shape) for number in range(case.inputs)]
    values = [identity(file, value, case.shape) for value in own] if first else list(own)
    constants = [file.constant(value, value.dtype) for value in case.constants]
    output = file.tensor("y", case.made, case.dtype)
    reads = [*values, *constants]
    if case.kind == "SPLIT":
        reads.reverse()
    file.operator(case.kind, reads, [output], case.options)
    return file.write(own, [output])


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, INT)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def blocks_to_space(x: np.ndarray) -> np.ndarray:
    n, h, w, c = x.shape
    return x.reshape(n, h, w, 2, 2, c // 4).transpose(0, 1, 3, 2, 4, 5).reshape(n, 2 * h, 2 * w, c // 4)


def space_to_blocks(x: np.ndarray) -> np.ndarray:
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h // 2, w // 2, 4 * c)


def windows(x: np.ndarray, reduce: Callable[..., Any]) -> np.ndarray:
    """A pool of 2x2 with stride 2 over an image of even size."""
    n, h, w, c = x.shape
    return reduce(x.reshape(n, h // 2, 2, w // 2, 2, c), axis=(2, 4))


C = floats(3)
POOL = ("Pool2DOptions", {"Padding": 1, "StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2})
WHOLE = ("Pool2DOptions", {"Padding": 1, "StrideH": 1, "StrideW": 1, "FilterHeight": 4, "FilterWidth": 6})
PADDING = np.array([[0, 0], [1, 2], [0, 1], [0, 2]], INT)
KEEP = ("ReducerOptions", {"KeepDims": True})
DROP = ("ReducerOptions", {"KeepDims": False})
W = floats(5, 3)

CASES = [
    Case("ADD", SHAPE, np.add, options=("AddOptions", {}), inputs=2),
    Case("ADD", SHAPE, np.add, [C], ("AddOptions", {})),
    Case(
        "SUB", SHAPE, lambda x, c: np.maximum(x - c, 0), [floats(6, 1)], ("SubOptions", {"FusedActivationFunction": 1})
    ),
    Case("MUL", SHAPE, np.multiply, [np.array(2.5, np.float32)], ("MulOptions", {})),
    Case("DIV", SHAPE, np.divide, [floats(1, 4, 6, 3)], ("DivOptions", {})),
    Case("MAXIMUM", SHAPE, np.maximum, inputs=2),
    Case("SQUARED_DIFFERENCE", SHAPE, lambda x, y: (x - y) ** 2, inputs=2),
    Case("ABS", SHAPE, np.abs),
    Case("EXP", SHAPE, np.exp),
    Case("RSQRT", SHAPE, lambda x: 1 / np.sqrt(x)),
    Case("GREATER", SHAPE, np.greater, inputs=2, dtype=np.bool_),
    Case(
        "CAST",
        SHAPE,
        lambda x: x.astype(INT),
        dtype=INT,
        options=("CastOptions", {"InDataType": 0, "OutDataType": 2}),
    ),
    Case("RELU6", SHAPE, lambda x: np.clip(x, 0, 6)),
    Case("LEAKY_RELU", SHAPE, lambda x: np.where(x < 0, 0.1 * x, x), options=("LeakyReluOptions", {"Alpha": 0.1})),
    Case("PRELU", SHAPE, lambda x, a: np.where(x < 0, a * x, x), [floats(1, 1, 3)]),
    Case("HARD_SWISH", SHAPE, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    Case("LOGISTIC", SHAPE, lambda x: 1 / (1 + np.exp(-x))),
    Case("SOFTMAX", SHAPE, lambda x: softmax(2 * x), options=("SoftmaxOptions", {"Beta": 2.0})),
    Case("MAX_POOL_2D", (1, 2, 3, 3), lambda x: windows(x, np.max), options=POOL),
    Case("AVERAGE_POOL_2D", (1, 2, 3, 3), lambda x: windows(x, np.mean), options=POOL),
    Case("AVERAGE_POOL_2D", (1, 1, 1, 3), lambda x: x.mean((1, 2), keepdims=True), options=WHOLE),
    Case(
        "DEPTH_TO_SPACE",
        (1, 8, 12, 1),
        blocks_to_space,
        options=("DepthToSpaceOptions", {"BlockSize": 2}),
        shape=(1, 4, 6, 4),
    ),
    Case("SPACE_TO_DEPTH", (1, 2, 3, 12), space_to_blocks, options=("SpaceToDepthOptions", {"BlockSize": 2})),
    Case(
        "RESIZE_NEAREST_NEIGHBOR",
        (1, 8, 12, 3),
        lambda x, _: x.repeat(2, 1).repeat(2, 2),
        [ints(8, 12)],
        ("ResizeNearestNeighborOptions", {}),
    ),
    Case("FULLY_CONNECTED", (24, 5), lambda x, w: x.reshape(24, 3) @ w.T, [W], ("FullyConnectedOptions", {})),
    Case(
        "FULLY_CONNECTED",
        (1, 4, 6, 5),
        lambda x, w, b: x @ w.T + b,
        [W, floats(5)],
        ("FullyConnectedOptions", {"KeepNumDims": True}),
    ),
    Case(
        "BATCH_MATMUL",
        (1, 4, 6, 6),
        lambda x, y: x @ y.transpose(0, 1, 3, 2),
        options=("BatchMatMulOptions", {"AdjY": True}),
        inputs=2,
    ),
    Case("MEAN", (1, 3), lambda x, _: x.mean((1, 2)), [ints(1, 2)], DROP),
    Case("MEAN", (1, 1, 1, 3), lambda x, _: x.mean((1, 2), keepdims=True), [ints(1, 2)], KEEP),
    Case("SUM", (1, 6, 3), lambda x, _: x.sum(1), [ints(1)], DROP),
    Case("REDUCE_MAX", (1, 4, 6), lambda x, _: x.max(-1), [ints(-1)], DROP),
    Case("ARG_MAX", (1, 4, 6), lambda x, _: x.argmax(-1), [ints(-1)], ("ArgMaxOptions", {"OutputType": 2}), dtype=INT),
    Case("RESHAPE", (1, 24, 3), lambda x, _: x.reshape(1, 24, 3), [ints(1, 24, 3)]),
    Case("SQUEEZE", (4, 6, 3), lambda x: x[0], options=("SqueezeOptions", {"SqueezeDims": [0]})),
    Case("TRANSPOSE", (1, 3, 4, 6), lambda x, _: x.transpose(0, 3, 1, 2), [ints(0, 3, 1, 2)]),
    Case("TRANSPOSE", (1, 6, 4, 3), lambda x, _: x.transpose(0, 2, 1, 3), [ints(0, 2, 1, 3)]),
    Case("PAD", (1, 7, 7, 5), np.pad, [PADDING]),
    Case(
        "MIRROR_PAD", (1, 7, 7, 5), lambda x, p: np.pad(x, p, "reflect"), [PADDING], ("MirrorPadOptions", {"Mode": 0})
    ),
    Case("PADV2", (1, 7, 7, 5), lambda x, p, v: np.pad(x, p, constant_values=v), [PADDING, np.array(-2, np.float32)]),
    Case("TILE", (1, 8, 6, 9), np.tile, [ints(1, 2, 1, 3)]),
    Case(
        "CONCATENATION",
        (1, 4, 6, 6),
        lambda x, y: np.concatenate([x, y], -1),
        options=("ConcatenationOptions", {"Axis": -1}),
        inputs=2,
    ),
    Case(
        "CONCATENATION",
        (1, 4, 6, 5),
        lambda x, c: np.concatenate([x, c], 3),
        [floats(1, 4, 6, 2)],
        ("ConcatenationOptions", {"Axis": 3}),
    ),
    Case(
        "PACK",
        (1, 2, 4, 6, 3),
        lambda x, y: np.stack([x, y], 1),
        options=("PackOptions", {"Axis": 1, "ValuesCount": 2}),
        inputs=2,
    ),
    Case("SPLIT", SHAPE, lambda x, _: x, [ints(3)], ("SplitOptions", {"NumSplits": 1})),
    Case("SLICE", (1, 2, 6, 2), lambda x, *_: x[:, 1:3, :, 1:], [ints(0, 1, 0, 1), ints(1, 2, -1, 2)]),
    Case(
        "STRIDED_SLICE",
        (1, 2, 6, 3),
        lambda x, *_: x[:, ::2],
        [ints(0, 0, 0, 0), ints(1, 4, 0, 3), ints(1, 2, 1, 1)],
        ("StridedSliceOptions", {"EndMask": 4}),
    ),
    Case(
        "STRIDED_SLICE",
        (4, 6),
        lambda x, *_: x[0, :, :, -1],
        [ints(0, 0, 0, -1), ints(1, 4, 6, 0), ints(1, 1, 1, 1)],
        ("StridedSliceOptions", {"ShrinkAxisMask": 9}),
    ),
    Case("GATHER", (1, 4, 6, 2), lambda x, _: x[..., [2, 0]], [ints(2, 0)], ("GatherOptions", {"Axis": 3})),
]
