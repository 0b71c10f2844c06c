"""Operators that put tensors together or take parts of them."""

from __future__ import annotations

from collections.abc import Sequence

from anfbuild.errors import StepError
from anfbuild.sources.readers.tflite.builder import FIRST, OWN, Builder
from anfbuild.sources.readers.tflite.operators.common import Converters, axis_of, by_layout, held_layout, keeps_order
from anfbuild.sources.readers.tflite.source import Operator


def _concatenate(builder: Builder, operator: Operator) -> None:
    layout = held_layout(builder, operator)
    axis = axis_of(operator.option("Axis", 0), len(builder.shape(operator.outputs[0])), layout)
    names = [builder.value(index, layout) for index in operator.inputs]
    made = builder.node("Concat", names, axis=axis)
    builder.put(operator.outputs[0], made, layout, operator.option("FusedActivationFunction", 0))


def _pack(builder: Builder, operator: Operator) -> None:
    axis = axis_of(operator.option("Axis", 0), len(builder.shape(operator.outputs[0])), OWN)
    where = builder.array([axis])
    names = [builder.node("Unsqueeze", [builder.value(index), where]) for index in operator.inputs]
    builder.put(operator.outputs[0], builder.node("Concat", names, axis=axis))


def _unpack(builder: Builder, operator: Operator) -> None:
    value = operator.inputs[0]
    axis = axis_of(operator.option("Axis", 0), len(builder.shape(value)), OWN)
    where = builder.array([axis])
    made = _split_nodes(builder, builder.value(value), axis, [1] * len(operator.outputs))
    for index, name in zip(operator.outputs, made, strict=True):
        builder.put(index, builder.node("Squeeze", [name, where]))


def _split(builder: Builder, operator: Operator) -> None:
    """SPLIT reads (dimension, value), SPLIT_V (value, sizes, dimension): the file states all shapes."""
    where, value = operator.inputs[:2] if operator.kind == "SPLIT" else (operator.inputs[2], operator.inputs[0])
    layout = held_layout(builder, operator)
    (axis,) = builder.integers(where, "the dimension")
    rank = len(builder.shape(value))
    sizes = [builder.shape(index)[axis_of(axis, rank, OWN)] for index in operator.outputs]
    made = _split_nodes(builder, builder.value(value, layout), axis_of(axis, rank, layout), sizes)
    for index, name in zip(operator.outputs, made, strict=True):
        builder.put(index, name, layout)


def _split_nodes(builder: Builder, name: str, axis: int, sizes: Sequence[int]) -> list[str]:
    return builder.nodes("Split", [name, builder.array(list(sizes))], len(sizes), axis=axis)


def _slice(builder: Builder, operator: Operator) -> None:
    value, begin, _ = operator.inputs
    layout = held_layout(builder, operator)
    starts = builder.integers(begin, "the begin of the slice")
    ends = [start + size for start, size in zip(starts, builder.shape(operator.outputs[0]), strict=True)]
    made = _slice_node(builder, builder.value(value, layout), layout, starts, ends, [1] * len(starts))
    builder.put(operator.outputs[0], made, layout)


def _strided_slice(builder: Builder, operator: Operator) -> None:
    value, output = operator.inputs[0], operator.outputs[0]
    shape = builder.shape(value)
    if operator.option("EllipsisMask", 0) or operator.option("NewAxisMask", 0):
        raise StepError(
            "a slice with an ellipsis or a new dimension is not supported", remedy="Write the slice without them."
        )
    starts, ends, steps = _bounds(builder, operator)
    single = [axis for axis in range(len(shape)) if _is_set(operator, "ShrinkAxisMask", axis)]
    first = len(shape) == 4 and builder.is_first(value) and (not single or keeps_order(single))
    layout = FIRST if first else OWN
    made = _slice_node(builder, builder.value(value, layout), layout, starts, ends, steps)
    if single:
        gone = builder.array(sorted(axis_of(axis, len(shape), layout) for axis in single))
        made, layout = builder.node("Squeeze", [made, gone]), OWN
    builder.put(output, made, layout)


def _bounds(builder: Builder, operator: Operator) -> tuple[list[int], list[int], list[int]]:
    """Start, end and step of a strided slice, one each for every dimension of its input."""
    shape = builder.shape(operator.inputs[0])
    names = ("the begin of the slice", "the end of the slice", "the strides of the slice")
    given = [builder.integers(index, name) for index, name in zip(operator.inputs[1:4], names, strict=True)]
    bounds = [(0, size, 1) for size in shape]
    for axis, (start, end, step) in enumerate(zip(*given, strict=True)):
        size = shape[axis]
        if not step:
            raise StepError("a slice with a stride of 0 makes no sense")
        if _is_set(operator, "ShrinkAxisMask", axis):
            bounds[axis] = (start % size, start % size + 1, 1)
            continue
        if _is_set(operator, "BeginMask", axis):
            start = 0 if step > 0 else size - 1
        if _is_set(operator, "EndMask", axis):
            end = size if step > 0 else -size - 1
        bounds[axis] = (start, end, step)
    return [b[0] for b in bounds], [b[1] for b in bounds], [b[2] for b in bounds]


def _is_set(operator: Operator, mask: str, axis: int) -> bool:
    return bool(operator.option(mask, 0) >> axis & 1)


def _slice_node(
    builder: Builder, name: str, layout: str, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int]
) -> str:
    """Bounds are one a dimension, in the file's order."""
    axes = builder.array(list(range(len(starts))))
    bounds = [builder.array(by_layout(values, layout)) for values in (starts, ends)]
    return builder.node("Slice", [name, *bounds, axes, builder.array(by_layout(steps, layout))])


def _gather(builder: Builder, operator: Operator) -> None:
    value, indices = operator.inputs
    if operator.option("BatchDims", 0):
        raise StepError("a GATHER with batch dimensions is not supported", remedy="Export the model without it.")
    axis = axis_of(operator.option("Axis", 0), len(builder.shape(value)), OWN)
    builder.put(operator.outputs[0], builder.node("Gather", [builder.value(value), builder.value(indices)], axis=axis))


CONVERTERS: Converters = {
    "CONCATENATION": _concatenate,
    "PACK": _pack,
    "UNPACK": _unpack,
    "SPLIT": _split,
    "SPLIT_V": _split,
    "SLICE": _slice,
    "STRIDED_SLICE": _strided_slice,
    "GATHER": _gather,
}
