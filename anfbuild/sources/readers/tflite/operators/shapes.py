"""Operators that move numbers, or see the same ones in another shape."""

from __future__ import annotations

import numpy as np

from anfbuild.errors import StepError
from anfbuild.sources.readers.tflite.builder import FIRST, OWN, TO_FIRST, TO_OWN, Builder
from anfbuild.sources.readers.tflite.operators.common import Converters, by_layout, held_layout
from anfbuild.sources.readers.tflite.source import Operator


def _reshape(builder: Builder, operator: Operator) -> None:
    """RESHAPE, SQUEEZE and EXPAND_DIMS: the file states the shape that comes out."""
    value, output = operator.inputs[0], operator.outputs[0]
    constant = builder.constant(value)
    if constant is not None and builder.source.tensor(value).encoding is None:
        builder.constants[output] = constant.reshape(builder.shape(output))
    else:
        builder.put(output, builder.reshaped(value, builder.shape(output)))


def _transpose(builder: Builder, operator: Operator) -> None:
    """Among the orders in which the input is held and the output may be, one that needs no node, if there is one."""
    value, output = operator.inputs[0], operator.outputs[0]
    order = builder.integers(operator.inputs[1], "the order of dimensions")
    if sorted(order) != list(range(len(builder.shape(value)))):
        raise StepError(f"{order} is no order of {len(builder.shape(value))} dimensions")
    first = len(order) == 4 and builder.is_first(value)
    held = FIRST if first else OWN
    through = [TO_OWN[axis] for axis in order] if first else order
    wanted = [(OWN, through)]
    if len(order) == 4:
        wanted.append((FIRST, [through[axis] for axis in TO_FIRST]))
    name = builder.value(value, held)
    for layout, moved in wanted:
        if moved == list(range(len(moved))):
            builder.put(output, name, layout)
            return
    builder.put(output, builder.node("Transpose", [name], perm=through))


def _pad(builder: Builder, operator: Operator) -> None:
    layout = held_layout(builder, operator)
    rows = builder.required(operator.inputs[1], "the padding").reshape(-1, 2)
    before = by_layout([int(row[0]) for row in rows], layout)
    after = by_layout([int(row[1]) for row in rows], layout)
    names = [builder.value(operator.inputs[0], layout), builder.array([*before, *after])]
    if operator.kind == "PADV2":
        names.append(builder.value(operator.inputs[2]))
    mode = "constant"
    if operator.kind == "MIRROR_PAD":
        mode = "reflect"
        if operator.option("Mode", 0):
            raise StepError("padding in SYMMETRIC mode is not supported", remedy="Pad in REFLECT mode.")
    builder.put(operator.outputs[0], builder.node("Pad", names, mode=mode), layout)


def _tile(builder: Builder, operator: Operator) -> None:
    layout = held_layout(builder, operator)
    repeats = by_layout(builder.integers(operator.inputs[1], "the number of repeats"), layout)
    names = [builder.value(operator.inputs[0], layout), builder.array(repeats)]
    builder.put(operator.outputs[0], builder.node("Tile", names), layout)


def _broadcast(builder: Builder, operator: Operator) -> None:
    layout = held_layout(builder, operator)
    shape = builder.array(by_layout(builder.shape(operator.outputs[0]), layout))
    builder.put(operator.outputs[0], builder.node("Expand", [builder.value(operator.inputs[0], layout), shape]), layout)


def _shape(builder: Builder, operator: Operator) -> None:
    output = operator.outputs[0]
    builder.constants[output] = np.array(builder.shape(operator.inputs[0]), builder.source.tensor(output).dtype)


CONVERTERS: Converters = {
    "RESHAPE": _reshape,
    "SQUEEZE": _reshape,
    "EXPAND_DIMS": _reshape,
    "TRANSPOSE": _transpose,
    "PAD": _pad,
    "PADV2": _pad,
    "MIRROR_PAD": _pad,
    "TILE": _tile,
    "BROADCAST_TO": _broadcast,
    "SHAPE": _shape,
}
