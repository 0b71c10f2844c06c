"""Activations that are operators of their own."""

from __future__ import annotations

import functools
from typing import Any

from anfbuild.sources.readers.tflite.builder import Builder
from anfbuild.sources.readers.tflite.operators.common import Converters, axis_of, held_layout
from anfbuild.sources.readers.tflite.source import Operator


def _each(kind: str, builder: Builder, operator: Operator, **attributes: Any) -> None:
    layout = held_layout(builder, operator)
    name = builder.node(kind, [builder.value(operator.inputs[0], layout)], **attributes)
    builder.put(operator.outputs[0], name, layout)


def _with_alpha(kind: str, builder: Builder, operator: Operator) -> None:
    _each(kind, builder, operator, alpha=float(operator.option("Alpha", 0.0)))


def _clip(low: float, high: float, builder: Builder, operator: Operator) -> None:
    layout = held_layout(builder, operator)
    names = [builder.value(operator.inputs[0], layout), builder.number(low), builder.number(high)]
    builder.put(operator.outputs[0], builder.node("Clip", names), layout)


def _prelu(builder: Builder, operator: Operator) -> None:
    value, slope = operator.inputs
    layout = held_layout(builder, operator)
    builder.put(
        operator.outputs[0], builder.node("PRelu", [builder.value(value, layout), builder.value(slope, layout)]), layout
    )


def _along(kind: str, builder: Builder, operator: Operator) -> None:
    """Softmax and its like, along the last dimension of the file's order."""
    layout = held_layout(builder, operator)
    name = builder.value(operator.inputs[0], layout)
    beta = float(operator.option("Beta", 1.0)) if kind == "Softmax" else 1.0
    if beta != 1:
        name = builder.node("Mul", [name, builder.number(beta)])
    axis = axis_of(-1, len(builder.shape(operator.inputs[0])), layout)
    builder.put(operator.outputs[0], builder.node(kind, [name], axis=axis), layout)


def _gelu(builder: Builder, operator: Operator) -> None:
    layout = held_layout(builder, operator)
    x = builder.value(operator.inputs[0], layout)
    if operator.option("Approximate", False):
        cube = builder.node("Mul", [builder.node("Mul", [x, x]), x])
        inner = builder.node("Add", [x, builder.node("Mul", [cube, builder.number(0.044715)])])
        gate = builder.node("Tanh", [builder.node("Mul", [inner, builder.number(0.7978845608028654)])])
    else:
        gate = builder.node("Erf", [builder.node("Mul", [x, builder.number(0.7071067811865476)])])
    half = builder.node("Mul", [x, builder.number(0.5)])
    gate = builder.node("Add", [gate, builder.number(1.0)])
    builder.put(operator.outputs[0], builder.node("Mul", [half, gate]), layout)


CONVERTERS: Converters = {
    **{
        kind: functools.partial(_each, name)
        for kind, name in {
            "RELU": "Relu",
            "LOGISTIC": "Sigmoid",
            "TANH": "Tanh",
            "HARD_SWISH": "HardSwish",
        }.items()
    },
    "ELU": functools.partial(_each, "Elu"),
    "LEAKY_RELU": functools.partial(_with_alpha, "LeakyRelu"),
    "RELU6": functools.partial(_clip, 0.0, 6.0),
    "RELU_N1_TO_1": functools.partial(_clip, -1.0, 1.0),
    "RELU_0_TO_1": functools.partial(_clip, 0.0, 1.0),
    "PRELU": _prelu,
    "SOFTMAX": functools.partial(_along, "Softmax"),
    "LOG_SOFTMAX": functools.partial(_along, "LogSoftmax"),
    "GELU": _gelu,
}
