"""Writing a model without a second copy of it in memory: protobuf itself makes all bytes before it writes any.

A message on the wire is its fields one after the other, in any order, and a field that is itself a message is its
number, its length and its bytes. Source: "Encoding", the documentation of Protocol Buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import onnx

from anfbuild.graph import large

_BYTES = 2
"""The wire type of a field that is bytes of a stated length."""


def write(model: onnx.ModelProto, file: IO[bytes]) -> None:
    """Write the bytes of `model`: the same for the same model, in any process."""
    graph = _part(model.graph, without="initializer")
    heads = [_part(tensor, without="raw_data") for tensor in model.graph.initializer]
    sizes = [len(head) + _size(_raw_data(tensor)) for head, tensor in zip(heads, model.graph.initializer, strict=True)]
    file.write(_part(model, without="graph"))
    length = len(graph) + sum(len(_key(model.graph, "initializer", size)) + size for size in sizes)
    file.write(_key(model, "graph", length))
    file.write(graph)
    for head, size, tensor in zip(heads, sizes, model.graph.initializer, strict=True):
        file.write(_key(model.graph, "initializer", size))
        file.write(head)
        for piece in _raw_data(tensor):
            file.write(piece)


def _part(message: Any, *, without: str) -> bytes:
    """The bytes of all fields but one."""
    rest = type(message)()
    large.copy_fields(message, rest, without=(without,))
    data: bytes = rest.SerializeToString(deterministic=True)
    return data


def _raw_data(tensor: onnx.TensorProto) -> Iterator[bytes]:
    """The field `raw_data` of a tensor that has it, in pieces."""
    if tensor.HasField("raw_data"):
        data = tensor.raw_data
        yield _key(tensor, "raw_data", len(data))
        yield data


def _size(pieces: Iterator[bytes]) -> int:
    return sum(map(len, pieces))


def _key(message: Any, field: str, length: int) -> bytes:
    """What stands before the `length` bytes of a field."""
    number: int = message.DESCRIPTOR.fields_by_name[field].number
    return _varint(number << 3 | _BYTES) + _varint(length)


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the top bit says that more follow."""
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)
