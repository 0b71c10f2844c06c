"""Operators that do away with dimensions by reducing them."""

from __future__ import annotations

import functools

from onnx import helper

from anfbuild.sources.readers.tflite.builder import FIRST, OWN, Builder
from anfbuild.sources.readers.tflite.operators.common import Converters, axis_of, keeps_order
from anfbuild.sources.readers.tflite.source import Operator


def _layout(builder: Builder, operator: Operator, axes: list[int], keep: bool) -> str:
    """The order in which the input may be read, so that the output's is known."""
    index = operator.inputs[0]
    first = len(builder.shape(index)) == 4 and builder.is_first(index)
    return FIRST if first and (keep or keeps_order(axes)) else OWN


def _reduce(kind: str, builder: Builder, operator: Operator) -> None:
    value, which = operator.inputs
    rank = len(builder.shape(value))
    axes = sorted({axis_of(axis, rank, OWN) for axis in builder.integers(which, "the list of reduced dimensions")})
    keep = bool(operator.option("KeepDims", False))
    layout = _layout(builder, operator, axes, keep)
    there = sorted(axis_of(axis, rank, layout) for axis in axes)
    names = [builder.value(value, layout)]
    if kind == "ReduceSum":  # the one whose axes are an input at opset 17
        made = builder.node(kind, [*names, builder.array(there)], keepdims=int(keep))
    else:
        made = builder.node(kind, names, axes=there, keepdims=int(keep))
    builder.put(operator.outputs[0], made, layout if keep else OWN)


def _position(kind: str, builder: Builder, operator: Operator) -> None:
    value, which = operator.inputs
    rank = len(builder.shape(value))
    (axis,) = [axis_of(axis, rank, OWN) for axis in builder.integers(which, "the dimension")]
    layout = _layout(builder, operator, [axis], keep=False)
    name = builder.value(value, layout)
    made = builder.node(kind, [name], axis=axis_of(axis, rank, layout), keepdims=0)
    output = builder.source.tensor(operator.outputs[0])
    made = builder.node("Cast", [made], to=helper.np_dtype_to_tensor_dtype(output.dtype))
    builder.put(operator.outputs[0], made)


CONVERTERS: Converters = {
    "MEAN": functools.partial(_reduce, "ReduceMean"),
    "SUM": functools.partial(_reduce, "ReduceSum"),
    "REDUCE_MAX": functools.partial(_reduce, "ReduceMax"),
    "REDUCE_MIN": functools.partial(_reduce, "ReduceMin"),
    "REDUCE_PROD": functools.partial(_reduce, "ReduceProd"),
    "ARG_MAX": functools.partial(_position, "ArgMax"),
    "ARG_MIN": functools.partial(_position, "ArgMin"),
}
