"""Reading and writing ONNX files: a bad file is refused by name, and nothing outside its folder is read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx.external_data_helper import load_external_data_for_model, uses_external_data

from anfbuild.errors import StepError
from anfbuild.graph import large, wire

# The checker's text for a bad node ends with "Bad node spec for node. Name: NAME OpType: TYPE".
_BAD_NODE = re.compile(r"Name: (?P<name>\S*) OpType: (?P<type>\S+)")
_ONE_PLACE = (
    "Save the model as one file, its data inside: onnx.save(model, path); or let source.path name the folder that "
    "holds the model and its data, and source.file the model in it."
)
_ALIGNMENT = 4096
"""Of data beside a model: that of memory pages, so that it can be mapped."""
_EXPORT_AGAIN = "Export the model again, or fetch it again and pin its SHA-256."


def load(path: Path) -> onnx.ModelProto:
    """The model in `path`, with external data read in, accepted by onnx.checker.

    Raises StepError naming the file (and the node, where the checker names one) when it is missing, empty, cut short,
    not ONNX or refused by the checker, or when its external data lie outside the model's own folder.
    """
    model = parse(path)
    try:
        load_external_data_for_model(model, str(path.parent))
    except (OSError, ValueError, RuntimeError, onnx.checker.ValidationError) as error:
        raise StepError(
            f"the external data of the model cannot be read: {_first_line(error)}",
            where=str(path),
            remedy=_ONE_PLACE,
        ) from error
    check(model, where=str(path))
    return model


def parse(path: Path) -> onnx.ModelProto:
    """The model in `path` without its external data, which lie in its own folder. Values that are there have the
    bytes that type and shape say; nothing else is checked.

    Raises StepError as `load` does, short of the checker.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise StepError("there is no such model file", where=str(path), remedy="Check the path.") from error
    except OSError as error:
        raise StepError(f"the model file cannot be read: {error.strerror}", where=str(path)) from error
    if not data:
        raise StepError("the model file is empty", where=str(path), remedy=_EXPORT_AGAIN)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf raises one of several kinds, by its implementation
        raise StepError("not an ONNX file, or cut short", where=str(path), remedy=_EXPORT_AGAIN) from error
    if not model.ir_version or not model.HasField("graph"):
        raise StepError("not an ONNX model: no IR version or no graph in it", where=str(path), remedy=_EXPORT_AGAIN)
    for tensor in _tensors(model.graph):
        if uses_external_data(tensor):
            _check_location(tensor, path)
        elif large.has_data(tensor):
            _check_bytes(tensor, str(path))
    return model


def save(model: onnx.ModelProto, path: Path) -> None:
    """Write `model` to `path`: the same model gives the same bytes in any process.

    The large initializers of a model of more than 2 GB go to a file of that name and `.data`, beside it.
    """
    if large.is_large(model):
        model = _with_data_beside(model, path.with_name(f"{path.name}.data"))
    if large.is_heavy(model):
        with path.open("wb") as file:
            wire.write(model, file)
    else:
        path.write_bytes(serialize(model))


def _with_data_beside(model: onnx.ModelProto, data: Path) -> onnx.ModelProto:
    """Write the large initializers to `data`; the model that refers to them there."""
    small = large.skeleton(model)
    kept = {value.name for value in model.graph.input}
    inputs = [value for value in small.graph.input if value.name in kept]
    del small.graph.input[:]
    small.graph.input.extend(inputs)
    with data.open("wb") as file:
        for tensor in filter(large.is_left_out, model.graph.initializer):
            file.write(b"\0" * (-file.tell() % _ALIGNMENT))
            place = {"location": data.name, "offset": file.tell(), "length": file.write(tensor.raw_data)}
            outside = small.graph.initializer.add(
                name=tensor.name, data_type=tensor.data_type, dims=tensor.dims, data_location=onnx.TensorProto.EXTERNAL
            )
            for key, value in place.items():
                outside.external_data.add(key=key, value=str(value))
    return small


def serialize(model: onnx.ModelProto) -> bytes:
    """The deterministic bytes of `model`. Raises StepError over 2 GB, protobuf's limit."""
    try:
        data: bytes = model.SerializeToString(deterministic=True)
    except Exception as error:  # protobuf raises one of several kinds, by its implementation
        no_memory = isinstance(error, MemoryError)
        raise StepError(
            f"the model {'does not fit into memory' if no_memory else 'is larger than 2 GB, the most of one file'}",
            remedy="Use a smaller model or float16 weights, or cut off with model.outputs what makes it large.",
        ) from error
    return data


def check(model: onnx.ModelProto, *, where: str, full: bool = False) -> None:
    """Let onnx.checker judge `model`; `full` infers shapes too. Raises StepError naming the node, where known."""
    for tensor in _tensors(model.graph):
        _check_bytes(tensor, where)
    data = serialize(large.skeleton(model) if large.is_heavy(model) else model)
    try:
        onnx.checker.check_model(data, full_check=full)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, ValueError) as error:
        node = _BAD_NODE.search(str(error))
        place = f"{where}, node {node['name'] or '(unnamed)'} ({node['type']})" if node else where
        raise StepError(f"not a valid ONNX model: {_first_line(error)}", where=place, remedy=_EXPORT_AGAIN) from error


def _check_location(tensor: onnx.TensorProto, path: Path) -> None:
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    folder = path.parent.resolve()
    if not location or "\0" in location or not (folder / location).resolve().is_relative_to(folder):
        raise StepError(
            f"the external data of tensor {tensor.name!r} lie outside the model's folder: {location!r}",
            where=str(path),
            remedy=_ONE_PLACE,
        )


def _check_bytes(tensor: onnx.TensorProto, where: str) -> None:
    """StepError for an unknown type, and raw data that are not as long as type and shape say: the checker names no
    tensor, or does not look."""
    if tensor.data_type not in onnx.TensorProto.DataType.values():
        raise StepError(
            f"tensor {tensor.name!r} is of an unknown type, {tensor.data_type}", where=where, remedy=_EXPORT_AGAIN
        )
    stated = large.stated_bytes(tensor)
    if stated and tensor.HasField("raw_data") and len(tensor.raw_data) != stated:
        raise StepError(
            f"tensor {tensor.name!r} has {len(tensor.raw_data)} bytes, but its type and shape say {stated}",
            where=where,
            remedy=_EXPORT_AGAIN,
        )


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for subgraph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
                yield from _tensors(subgraph)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
