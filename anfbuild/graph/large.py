"""Large models: what only looks at the graph works on a skeleton. Of more than 2 GB protobuf has no bytes at all.

The skeleton of a model is the model with its large initializers as inputs, which say their type and shape as well.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Collection
from typing import Any

import onnx
from onnx import helper

from anfbuild.graph.edit import remove_at

MOST = 2**31 - 2**24
"""Bytes of initializers beyond which a model is handled in parts. The rest of the file has 16 MB."""
HEAVY = 2**20
"""Bytes of initializers beyond which what only looks at the graph works on the skeleton: each look would copy them."""
LARGE = 2**12
"""Bytes from which on an initializer is left out of the skeleton."""
LARGE_INTEGERS = 2**16
"""The same of integers, which may be positions and sizes that shapes are computed from."""
_FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


def is_large(model: onnx.ModelProto) -> bool:
    """Whether the model does not fit into one file, going by the types and shapes that it states."""
    return _bytes(model) > MOST


def is_heavy(model: onnx.ModelProto) -> bool:
    """Whether a skeleton of the model saves more than it costs."""
    return _bytes(model) > HEAVY


def _bytes(model: onnx.ModelProto) -> int:
    return sum(map(stated_bytes, model.graph.initializer))


def is_left_out(tensor: onnx.TensorProto) -> bool:
    """Whether an initializer is none of the skeleton's."""
    least = LARGE if tensor.data_type in _FLOATS else LARGE_INTEGERS
    return stated_bytes(tensor) >= least and tensor.HasField("raw_data")


def on_skeleton(
    model: onnx.ModelProto, work: Callable[[onnx.ModelProto], onnx.ModelProto]
) -> tuple[onnx.ModelProto, Callable[[], None]]:
    """What `work` makes of the model, or of its skeleton where it is heavy, and a function that
    writes the change into `model` itself."""
    if not is_heavy(model):
        changed = work(model)
        return changed, lambda: model.CopyFrom(changed)
    changed = work(skeleton(model))
    return changed, lambda: _take_over(model, changed)


def skeleton(model: onnx.ModelProto, leaves_out: Callable[[onnx.TensorProto], bool] = is_left_out) -> onnx.ModelProto:
    """The model without its large initializers, or those that `leaves_out` says."""
    small = onnx.ModelProto()
    copy_fields(model, small, without=("graph",))
    copy_fields(model.graph, small.graph, without=("initializer",))
    inputs = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if not leaves_out(tensor):
            small.graph.initializer.add().CopyFrom(tensor)
        elif tensor.name not in inputs:
            small.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return small


def structure(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model without the values of its large initializers and Constants, of which type and shape stay."""
    small = onnx.ModelProto()
    copy_fields(model, small, without=("graph",))
    copy_fields(model.graph, small.graph, without=("initializer",))
    for tensor in model.graph.initializer:
        if is_left_out(tensor):
            small.graph.initializer.add(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)
        else:
            small.graph.initializer.add().CopyFrom(tensor)
    for node in small.graph.node:
        for attribute in node.attribute if node.op_type == "Constant" else ():
            if attribute.HasField("t") and is_left_out(attribute.t):
                attribute.t.ClearField("raw_data")
    return small


def stated_bytes(tensor: onnx.TensorProto) -> int:
    """How many bytes a dense tensor of its type and shape has; 0 for strings and unknown types."""
    count: int = math.prod(tensor.dims)
    return (count * _bits().get(tensor.data_type, 0) + 7) // 8


def has_data(tensor: onnx.TensorProto) -> bool:
    """Whether the model at hand holds the values."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    fields = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data")
    return bool(tensor.raw_data) or 0 in tensor.dims or any(getattr(tensor, field) for field in fields)


def bits_of(kind: int) -> int:
    """Bits of an element of a type; 0 where they are not settled."""
    return _bits().get(kind, 0)


@functools.cache
def _bits() -> dict[int, int]:
    """Element type -> bits of an element, for those whose size is settled."""
    bits = {}
    for name, kind in onnx.TensorProto.DataType.items():
        if name in ("UNDEFINED", "STRING") or name.startswith("FLOAT6"):
            continue
        packed = re.search(r"INT([24])$|FLOAT([24])E", name)
        size = helper.tensor_dtype_to_np_dtype(kind).itemsize * 8
        bits[kind] = size if packed is None else int(packed[1] or packed[2])
    return bits


def _take_over(model: onnx.ModelProto, changed: onnx.ModelProto) -> None:
    """Give `model` all that `changed`, made of its skeleton, has; its large initializers stay where they are."""
    copy_fields(changed, model, without=("graph",))
    inputs = [value for value in changed.graph.input if value.name in {known.name for known in model.graph.input}]
    copy_fields(changed.graph, model.graph, without=("initializer", "input"))
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    known = model.graph.initializer
    remove_at(known, [position for position, tensor in enumerate(known) if not is_left_out(tensor)])
    model.graph.initializer.extend(changed.graph.initializer)


def copy_fields(source: Any, target: Any, without: Collection[str]) -> None:
    """Make all fields of a message but `without` those of another."""
    for field in target.DESCRIPTOR.fields:
        if field.name in without:
            continue
        target.ClearField(field.name)
        value = getattr(source, field.name)
        if hasattr(value, "extend"):
            getattr(target, field.name).extend(value)
        elif hasattr(value, "CopyFrom"):
            if source.HasField(field.name):
                getattr(target, field.name).CopyFrom(value)
        elif not field.has_presence or source.HasField(field.name):
            setattr(target, field.name, value)
