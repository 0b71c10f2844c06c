"""Operators that work element by element, on one tensor or on two that are broadcast."""

from __future__ import annotations

import functools

from onnx import helper

from anfbuild.sources.readers.tflite.builder import Builder
from anfbuild.sources.readers.tflite.operators.common import Converters, held_layout
from anfbuild.sources.readers.tflite.source import Operator


def _each(kind: str, builder: Builder, operator: Operator) -> None:
    """An operator that ONNX has too, for any number of inputs."""
    layout = held_layout(builder, operator)
    names = [builder.value(index, layout) for index in operator.inputs]
    builder.put(operator.outputs[0], builder.node(kind, names), layout)


def _fused(kind: str, builder: Builder, operator: Operator) -> None:
    """The same, with an activation fused into it."""
    layout = held_layout(builder, operator)
    names = [builder.value(index, layout) for index in operator.inputs]
    activation = operator.option("FusedActivationFunction", 0)
    builder.put(operator.outputs[0], builder.node(kind, names), layout, activation)


def _chain(first: str, second: str, builder: Builder, operator: Operator) -> None:
    """`second` of what `first` gives."""
    layout = held_layout(builder, operator)
    inner = builder.node(first, [builder.value(index, layout) for index in operator.inputs])
    builder.put(operator.outputs[0], builder.node(second, [inner]), layout)


def _square(builder: Builder, operator: Operator) -> None:
    """The square, of a difference where there are two inputs."""
    layout = held_layout(builder, operator)
    names = [builder.value(index, layout) for index in operator.inputs]
    name = builder.node("Sub", names) if len(names) == 2 else names[0]
    builder.put(operator.outputs[0], builder.node("Mul", [name, name]), layout)


def _cast(builder: Builder, operator: Operator) -> None:
    layout = held_layout(builder, operator)
    kind = helper.np_dtype_to_tensor_dtype(builder.source.tensor(operator.outputs[0]).dtype)
    name = builder.node("Cast", [builder.value(operator.inputs[0], layout)], to=kind)
    builder.put(operator.outputs[0], name, layout)


_SAME = {
    "MAXIMUM": "Max",
    "MINIMUM": "Min",
    "POW": "Pow",
    "ABS": "Abs",
    "NEG": "Neg",
    "EXP": "Exp",
    "LOG": "Log",
    "SQRT": "Sqrt",
    "SIN": "Sin",
    "COS": "Cos",
    "FLOOR": "Floor",
    "CEIL": "Ceil",
    "ROUND": "Round",
    "SIGN": "Sign",
    "EQUAL": "Equal",
    "GREATER": "Greater",
    "GREATER_EQUAL": "GreaterOrEqual",
    "LESS": "Less",
    "LESS_EQUAL": "LessOrEqual",
    "LOGICAL_AND": "And",
    "LOGICAL_OR": "Or",
    "LOGICAL_NOT": "Not",
    "SELECT_V2": "Where",
    "ADD_N": "Sum",
}

CONVERTERS: Converters = {
    **{kind: functools.partial(_each, name) for kind, name in _SAME.items()},
    **{kind: functools.partial(_fused, kind.capitalize()) for kind in ("ADD", "SUB", "MUL", "DIV")},
    "RSQRT": functools.partial(_chain, "Sqrt", "Reciprocal"),
    "NOT_EQUAL": functools.partial(_chain, "Equal", "Not"),
    "SQUARE": _square,
    "SQUARED_DIFFERENCE": _square,
    "CAST": _cast,
}
