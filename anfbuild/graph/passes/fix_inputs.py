"""Give every input the static shape that the recipe states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx

from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.graph.edit import PassResult
from anfbuild.graph.shapes import OpenDimension, input_values, is_static, open_dimensions


def run(model: onnx.ModelProto, input_shapes: Mapping[str, Sequence[int]]) -> PassResult:
    """Requires that no initializer is listed as an input.

    Ensures that every input has a static shape. One symbol with several sizes, which runs only where the model does not
    mean what it says, is noted. Where a dimension was open, the shapes of outputs and inner values may
    hold for the open dimension only, so they are no longer stated. Raises RecipeError for an unknown input, for a shape
    that contradicts the model, and for dimensions that stay open: then it lists each with the value to type.
    """
    inputs = {value.name: value for value in input_values(model)}
    fixed = fix(model, input_shapes)
    unranked = [name for name, value in inputs.items() if not value.type.tensor_type.HasField("shape")]
    if fixed.left or unranked:
        raise _open_error(inputs, fixed.left, unranked)
    if not fixed.changed:
        return PassResult("fix_inputs", 0)
    return PassResult("fix_inputs", fixed.changed, [f"fixed {fixed.changed} open dimensions", *fixed.differing])


class Fixed(NamedTuple):
    """What was done to the inputs of a model."""

    changed: int
    """Dimensions that were open."""
    left: list[OpenDimension]
    """Those that still are, with sizes to try."""
    differing: list[str]
    """What is said of symbols that have several sizes now."""


def fix(model: onnx.ModelProto, input_shapes: Mapping[str, Sequence[int]], *, propose: bool = False) -> Fixed:
    """Write `input_shapes` into the inputs, and with `propose` the last proposal into what these leave open.

    Raises RecipeError as `run` does, but for dimensions that stay open.
    """
    inputs = {value.name: value for value in input_values(model)}
    symbols = {
        (name, index): dim.dim_param
        for name, value in inputs.items()
        for index, dim in enumerate(value.type.tensor_type.shape.dim)
        if dim.dim_param
    }
    changed = 0
    for name, shape in input_shapes.items():
        if name not in inputs:
            raise RecipeError(
                f"the model has no input {name!r}",
                where=f"model.inputs.{name}",
                choices=inputs,
                remedy=f"{did_you_mean(name, inputs)}Name the inputs as the model does.",
            )
        changed += _fix(inputs[name], shape)
    sizes: dict[str, dict[int, str]] = {}
    for (name, index), symbol in symbols.items():
        dim = inputs[name].type.tensor_type.shape.dim[index]
        if is_static(dim):
            sizes.setdefault(symbol, {}).setdefault(dim.dim_value, f"{name}[{index}]")
    left = open_dimensions(model, {symbol: next(iter(found)) for symbol, found in sizes.items()})
    for entry in left if propose else ():
        inputs[entry.input].type.tensor_type.shape.dim[entry.index].dim_value = entry.proposals[-1]
    if changed or (left and propose):  # what is stated of inner values may hold for the open dimension alone
        del model.graph.value_info[:]
        for value in model.graph.output:
            value.type.tensor_type.ClearField("shape")
    differing = [
        f"{symbol} is " + " and ".join(f"{size} in {place}" for size, place in found.items())
        for symbol, found in sizes.items()
        if len(found) > 1
    ]
    return Fixed(changed, left, differing)


def _fix(value: onnx.ValueInfoProto, shape: Sequence[int]) -> int:
    """Write `shape` into `value`; returns how many dimensions were open."""
    kind = value.type.tensor_type
    where = f"model.inputs.{value.name}.shape"
    if any(size < 1 for size in shape):
        raise RecipeError(f"a size below 1 in {list(shape)}", where=where, remedy="Give every dimension a fixed size.")
    if not kind.HasField("shape"):
        kind.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in shape)
    dims = kind.shape.dim
    expected = _shape_text(value)
    if len(dims) != len(shape):
        raise RecipeError(
            f"{list(shape)} has {len(shape)} dimensions, but the model's input is {expected}",
            where=where,
            remedy=f"Give {len(dims)} sizes.",
        )
    fixed = [(index, dim.dim_value) for index, dim in enumerate(dims) if is_static(dim)]
    for index, size in fixed:
        if size != shape[index]:
            raise RecipeError(
                f"dimension {index} is {shape[index]}, but the model fixes it at {size} (its input is {expected})",
                where=where,
                remedy=f"Set dimension {index} to {size}.",
            )
    for dim, size in zip(dims, shape, strict=True):
        dim.dim_value = size
    return len(dims) - len(fixed)


def _open_error(
    inputs: Mapping[str, onnx.ValueInfoProto], left: Sequence[OpenDimension], unranked: Sequence[str]
) -> RecipeError:
    lines = [
        f"input {d.input!r} dimension {d.index} ({d.symbol or 'unnamed'}): try {' or '.join(map(str, d.proposals))}"
        for d in left
    ] + [f"input {name!r} states no shape at all" for name in unranked]
    overrides = []
    for name in dict.fromkeys(d.input for d in left):
        proposed = {d.index: d.proposals[-1] for d in left if d.input == name}
        dims = inputs[name].type.tensor_type.shape.dim
        sizes = [proposed.get(index, dim.dim_value) for index, dim in enumerate(dims)]
        overrides.append(f"model.inputs.{name}.shape=[{','.join(map(str, sizes))}]")
    overrides += [f"model.inputs.{name}.shape=[1,3,960,960]" for name in unranked]
    return RecipeError(
        "the model has dimensions that no shape in the recipe fixes:" + "".join(f"\n    {line}" for line in lines),
        where="model.inputs",
        remedy="Fix them, for example: " + " ".join(overrides),
    )


def _shape_text(value: onnx.ValueInfoProto) -> str:
    dims = value.type.tensor_type.shape.dim
    return "[" + ",".join(str(dim.dim_value) if is_static(dim) else dim.dim_param or "?" for dim in dims) + "]"
