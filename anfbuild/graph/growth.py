"""Refuse values that a few numbers make huge, before onnx's inference follows them.

onnx keeps one entry an element of every row of numbers that arithmetic reads, known or not: a Range over 10**12 takes
all memory that there is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph.edit import constant_value, constants, place, shape_value, subgraphs

LONGEST = 2**24
"""Elements of a value of one dimension."""
_SMALL = 64
"""Elements of a constant up to which it may be a shape."""

_STANDARD = ("", "ai.onnx")

Shapes = Mapping[str, Sequence[int]]


def may_grow(model: onnx.ModelProto) -> bool:
    """Whether `model` has anything that `refuse` may find: one walk, no inference."""
    rows = any(len(value.type.tensor_type.shape.dim) == 1 for value in model.graph.input)
    return rows or _has(model.graph, _GROWS)


def refuse(model: onnx.ModelProto, shapes: Shapes) -> None:
    """StepError for a row of more than LONGEST elements.

    `shapes` are those that are known without the values of tensors; the values that onnx's inference follows on its way
    to a shape are followed here.
    """
    for value in model.graph.input:
        _check(shapes.get(value.name), f"input {value.name!r}", f"input {value.name}")
    _walk(model.graph, shapes, {})


def _has(graph: onnx.GraphProto, operators: set[str]) -> bool:
    return any(
        node.op_type in operators or any(_has(inner, operators) for inner in subgraphs(node)) for node in graph.node
    )


def _walk(graph: onnx.GraphProto, shapes: Shapes, outer: Mapping[str, np.ndarray]) -> None:
    known = {**outer}
    for name, tensor in constants(graph).items():
        if math.prod(tensor.dims) <= _SMALL and tensor.data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
            known[name] = numpy_helper.to_array(tensor)
    for node in graph.node:
        for inner in subgraphs(node):
            _walk(inner, shapes, known)
        for name in node.output:
            _check(shapes.get(name) or _grown(node, shapes, known), f"value {name!r}", place(node))
        value = _follow(node, shapes, known)
        if value is not None and value.size <= _SMALL:
            known[node.output[0]] = value


def _check(shape: Sequence[int] | None, what: str, where: str) -> None:
    if shape is not None and len(shape) == 1 and shape[0] > LONGEST:
        raise StepError(
            f"{what} would be one row of {shape[0]} elements, {LONGEST} are allowed",
            where=where,
            remedy="Make the constants or sizes that its length is computed from smaller, or cut that part of the "
            "model with model.outputs.",
        )


def _grown(node: onnx.NodeProto, shapes: Shapes, known: Mapping[str, np.ndarray]) -> Sequence[int] | None:
    """The shape of what a node makes whose inputs' values say how long it is."""
    if node.op_type not in ("ConstantOfShape", "Expand", "Reshape") or node.domain not in _STANDARD:
        return None
    asked = known.get(node.input[-1])
    if asked is None or asked.shape != (1,):
        return None
    if node.op_type == "ConstantOfShape":
        return (int(asked[0]),)
    read = shapes.get(node.input[0])
    if node.op_type == "Reshape":
        return (math.prod(read),) if read is not None else None
    return (max(int(asked[0]), math.prod(read or ())),) if read is None or len(read) <= 1 else None


def _follow(node: onnx.NodeProto, shapes: Shapes, known: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """The value of a node that computes a shape, where it is known."""
    if node.domain not in _STANDARD:
        return None
    if node.op_type == "Shape":
        shape = shapes.get(node.input[0])
        return None if shape is None else shape_value(node, shape)
    if node.op_type == "Constant":
        value = constant_value(node)
        if value is None or value.data_type != onnx.TensorProto.INT64 or math.prod(value.dims) > _SMALL:
            return None
        return numpy_helper.to_array(value)
    compute = _FOLLOWED.get(node.op_type)
    if compute is None or not all(name in known for name in node.input if name):
        return None
    try:
        with np.errstate(all="ignore"):
            return np.asarray(compute([known[name] for name in node.input if name]))
    except (ValueError, IndexError, TypeError):  # not valid: others say what is wrong with it
        return None


def _slice(read: Sequence[np.ndarray]) -> np.ndarray:
    if read[0].ndim != 1 or len(read) < 3:
        raise ValueError("not a part of a shape")
    step = int(read[4][0]) if len(read) > 4 else 1
    return read[0][int(read[1][0]) : int(read[2][0]) : step]


_FOLLOWED: dict[str, Callable[[Sequence[np.ndarray]], np.ndarray]] = {
    "Identity": lambda read: read[0],
    "Cast": lambda read: read[0],
    "Add": lambda read: read[0] + read[1],
    "Sub": lambda read: read[0] - read[1],
    "Mul": lambda read: read[0] * read[1],
    "Concat": lambda read: np.concatenate(read),
    "Gather": lambda read: read[0][read[1]],
    "Slice": _slice,
    "Squeeze": lambda read: read[0].reshape(()),
    "Unsqueeze": lambda read: read[0].reshape(1),
}
"""What onnx's inference follows on the way to a shape, on rows and single numbers."""
_GROWS = {"Range", "ConstantOfShape", "Expand", "Tile", "Pad", "Reshape", "Resize", "Upsample", "OneHot", "Squeeze"}
"""Operators that make a row of any length of little, or of what has more dimensions."""
