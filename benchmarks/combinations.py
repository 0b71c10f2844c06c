"""Forms of operators that the HTP might take and compute otherwise than stated: sizes, modes, padding, neighbours."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from operators import Build, Case, Graph

_SIDES = {"none": [0] * 4, "all": [1] * 4, "end": [0, 0, 1, 1], "begin": [1, 1, 0, 0], "height": [1, 0, 1, 0]}


def combinations() -> Iterator[Case]:
    """Every form."""
    yield from _resizes()
    yield from _pools()
    yield from _convolutions()
    yield from _movements()
    yield from _functions()


def signed(g: Graph, *shape: int) -> str:
    """A value between -2.5 and 3.5, whose zero is no end of its codes."""
    return g.op("Sub", g.op("Mul", g.x(*shape), g.c(6, np.float32)), g.c(2.5, np.float32))


def _form(op_type: str, note: str, build: Build) -> Case:
    return Case(op_type, build, note=note)


def _resizes() -> Iterator[Case]:
    changes: list[tuple[int, int | float]] = [(8, 2.0), (8, 3.0), (8, 1.5), (8, 0.5), (3, 5), (5, 9), (8, 16), (9, 5)]
    roundings = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    for coordinates in ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"):
        for mode, (length, change) in itertools.product((*roundings, "linear"), changes):
            attributes = {"mode": "linear"} if mode == "linear" else {"mode": "nearest", "nearest_mode": mode}

            def build(g: Graph, n: int = length, to: int | float = change, a: dict[str, Any] = attributes) -> str:
                is_scale = isinstance(to, float)
                how = ["", g.c([1, 1, to, to], np.float32)] if is_scale else ["", "", g.c([1, 4, to, to], np.int64)]
                return g.op("Resize", signed(g, 1, 4, n, n), *how, **a)

            attributes["coordinate_transformation_mode"] = coordinates
            yield _form("Resize", f"{coordinates} {mode} {length} to {change}", build)


def _pools() -> Iterator[Case]:
    for kind, sides, stride, ceil in itertools.product(("AveragePool", "MaxPool", "LpPool"), _SIDES, (1, 2), (0, 1)):
        if kind == "LpPool" and ceil:
            continue
        for length, kernel in ((8, 3), (9, 2)):
            more = {"ceil_mode": ceil} if ceil else {}

            def build(
                g: Graph,
                kind: str = kind,
                n: int = length,
                k: int = kernel,
                p: str = sides,
                s: int = stride,
                m: Any = more,
            ) -> str:
                return g.op(kind, signed(g, 1, 8, n, n), kernel_shape=[k, k], pads=_SIDES[p], strides=[s, s], **m)

            yield _form(kind, f"{length} by {kernel}, stride {stride}, padded at {sides}{', ceil' * ceil}", build)


def _convolutions() -> Iterator[Case]:
    for kernel, stride, group, behind in itertools.product((1, 2, 3), (1, 2), (1, 8), ("", "channel", "scalar")):

        def transposed(g: Graph, k: int = kernel, s: int = stride, group: int = group, behind: str = behind) -> str:
            x = g.op("ConvTranspose", g.x(1, 8, 6, 6), g.w(8, 8 // group, k, k), strides=[s, s], group=group)
            return g.op("Add", x, g.w(8, 1, 1) if behind == "channel" else g.w(1)) if behind else x

        note = f"kernel {kernel}, stride {stride}, group {group}{', and an Add of a ' * bool(behind)}{behind}"
        yield _form("ConvTranspose", note, transposed)
    for size, channels, has_bias in itertools.product((0.1, 0.3, 0.9, 2.0), (8, 32), (False, True)):

        def pointwise(g: Graph, size: float = size, c: int = channels, has_bias: bool = has_bias) -> str:
            weights = g.c(np.random.default_rng(c).uniform(-size, size, (c, 1, 1, 1)), np.float32)
            return g.op("Conv", signed(g, 1, c, 6, 6), weights, *([g.w(c)] if has_bias else []), group=c)

        yield _form("Conv", f"depthwise 1x1, {channels} weights to {size}{', bias' * has_bias}", pointwise)
    for dilation, stride, group in itertools.product((1, 2, 3), (1, 2, 3), (1, 4, 8)):

        def dilated(g: Graph, d: int = dilation, s: int = stride, group: int = group) -> str:
            weights = g.c(np.random.default_rng(d).uniform(-1, 1, (8, 8 // group, 3, 3)), np.float32)
            return g.op("Conv", signed(g, 1, 8, 16, 16), weights, dilations=[d, d], strides=[s, s], group=group)

        yield _form("Conv", f"dilation {dilation}, stride {stride}, group {group}", dilated)


def _movements() -> Iterator[Case]:
    for before, after in ((16, 32), (8, 16), (24, 32), (48, 64), (3, 4)):

        def padded(g: Graph, b: int = before, a: int = after) -> str:
            x = g.op("Pad", signed(g, 1, b, 8, 8), g.c([0, 0, 0, 0, 0, a - b, 0, 0], np.int64))
            return g.op("Conv", x, g.w(4, a, 1, 1))

        yield _form("Pad", f"{before} channels to {after}", padded)
    for mode, pads in itertools.product(("constant", "reflect", "edge"), ([1, 1, 1, 1], [0, 2, 0, 0], [2, 0, 0, 1])):

        def bordered(g: Graph, m: str = mode, p: list[int] = pads) -> str:
            return g.op("Pad", signed(g, 1, 8, 8, 8), g.c([0, 0, *p[:2], 0, 0, *p[2:]], np.int64), mode=m)

        yield _form("Pad", f"{mode} {pads}", bordered)
    for count, piece, axis in itertools.product((31, 32, 48), (4, 8, 12, 16, 32), (1, 2, 3)):

        def gathered(g: Graph, n: int = count, p: int = piece, a: int = axis) -> str:
            shape = [1, 3, 3, p] if a < 3 else [1, 3, p, 3]
            shape[a] = 16
            return g.op("Gather", signed(g, *shape), g.c(np.arange(n) % 16), axis=a)

        yield _form("Gather", f"{count} indices along axis {axis}, beside {piece}", gathered)
    rows = np.array([[2] * 8, [1] * 8], np.int64)
    for reduction in ("none", "add", "max", "min", "mul"):
        more = {} if reduction == "none" else {"reduction": reduction}

        def elements(g: Graph, m: dict[str, Any] = more) -> str:
            return g.op("ScatterElements", signed(g, 4, 8), g.c(rows), g.x(2, 8), **m)

        def slices(g: Graph, m: dict[str, Any] = more) -> str:
            return g.op("ScatterND", signed(g, 4, 8), g.c([[0], [2]], np.int64), g.x(2, 8), **m)

        yield _form("ScatterElements", f"{reduction} of another range", elements)
        yield _form("ScatterND", f"{reduction} of another range", slices)
    for mode, padding, align in itertools.product(("linear", "nearest"), ("zeros", "border", "reflection"), (0, 1)):

        def sampled(g: Graph, m: str = mode, p: str = padding, a: int = align) -> str:
            grid = g.op("Sub", g.op("Mul", g.x(1, 5, 5, 2), g.c(3, np.float32)), g.c(1.5, np.float32))
            return g.op("GridSample", g.x(1, 4, 8, 8), grid, mode=m, padding_mode=p, align_corners=a)

        yield _form("GridSample", f"{mode}, {padding}, align_corners {align}", sampled)


def _functions() -> Iterator[Case]:
    for name in (
        "Abs",
        "Ceil",
        "Elu",
        "Exp",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LeakyRelu",
        "Neg",
        "Selu",
        "Sigmoid",
    ):
        yield _form(name, "signed", lambda g, n=name: g.op(n, signed(g, 1, 8, 6, 6)))
    for name in ("Sin", "Softplus", "Tanh", "ThresholdedRelu", "Softmax", "LogSoftmax", "Atan", "Cos"):
        yield _form(name, "signed", lambda g, n=name: g.op(n, signed(g, 1, 8, 6, 6)))
    for name, low in itertools.product(("Log", "Sqrt", "Reciprocal"), (0.05, 0.5)):

        def positive(g: Graph, n: str = name, low: float = low) -> str:
            return g.op(n, g.op("Add", g.op("Mul", g.x(1, 8, 6, 6), g.c(3, np.float32)), g.c(low, np.float32)))

        yield _form(name, f"from {low}", positive)
    for name, axes in itertools.product(
        ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"), ([2, 3], [1])
    ):
        yield _form(name, f"axes {axes}", lambda g, n=name, a=axes: g.op(n, signed(g, 1, 8, 6, 6), g.c(a, np.int64)))
    yield _form(
        "BatchNormalization",
        "signed",
        lambda g: g.op("BatchNormalization", signed(g, 1, 8, 6, 6), *(g.w(8) for _ in "four")),
    )
    yield _form(
        "LayerNormalization", "signed", lambda g: g.op("LayerNormalization", signed(g, 1, 6, 32), g.w(32), g.w(32))
    )
    yield _form(
        "InstanceNormalization",
        "signed",
        lambda g: g.op("InstanceNormalization", signed(g, 1, 8, 6, 6), g.w(8), g.w(8)),
    )
    for shapes in (((1, 4, 8), (1, 8, 6)), ((1, 2, 4, 8), (1, 2, 8, 4)), ((1, 16, 64), (1, 64, 16))):
        yield _form("MatMul", f"{shapes}", lambda g, s=shapes: g.op("MatMul", *(signed(g, *shape) for shape in s)))
