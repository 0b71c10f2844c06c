"""Small TensorFlow Lite files, written with the schema package's own flatbuffers builder."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import flatbuffers
import numpy as np
import tflite

TYPES = {
    np.dtype(kind): getattr(tflite.TensorType, kind.upper())
    for kind in ("float32", "float16", "int8", "uint8", "int16", "int32", "int64", "bool")
}

Options = tuple[str, dict[str, Any]] | None
Sparsity = tuple[list[int], list[int], list[Any]]
"""Traversal order, block map, and for each level a size or (segments, indices)."""


@dataclasses.dataclass
class Written:
    name: str
    shape: Sequence[int]
    dtype: Any
    data: np.ndarray | None
    scale: Sequence[float]
    zero_point: Sequence[int]
    axis: int
    sparsity: Sparsity | None
    signature: Sequence[int]


class File:
    """A file in the making: `tensor` and `operator` add to it, `write` gives its bytes."""

    def __init__(self) -> None:
        self.tensors: list[Written] = []
        self.operators: list[tuple[str, list[int], list[int], Options, bytes]] = []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        dtype: Any = np.float32,
        scale: Sequence[float] = (),
        zero_point: Sequence[int] = (),
        axis: int = 0,
        signature: Sequence[int] = (),
    ) -> int:
        """A computed tensor; its number."""
        self.tensors.append(Written(name, shape, dtype, None, scale, zero_point, axis, None, signature))
        return len(self.tensors) - 1

    def constant(self, value: Any, dtype: Any = np.float32, **encoding: Any) -> int:
        array = np.asarray(value, dtype)
        index = self.tensor(f"c{len(self.tensors)}", array.shape, dtype, **encoding)
        self.tensors[index].data = array
        return index

    def sparse(self, values: Any, shape: Sequence[int], sparsity: Sparsity, dtype: Any = np.float32) -> int:
        index = self.constant(values, dtype)
        self.tensors[index].shape = shape
        self.tensors[index].sparsity = sparsity
        return index

    def operator(
        self, kind: str, inputs: Sequence[int], outputs: Sequence[int], options: Options = None, custom: bytes = b""
    ) -> None:
        """`kind` is a name of the schema, or any other for a custom operator."""
        self.operators.append((kind, list(inputs), list(outputs), options, custom))

    def write(self, inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
        b = flatbuffers.Builder(0)
        buffers = [self._buffer(b, None), *(self._buffer(b, tensor.data) for tensor in self.tensors)]
        tensors = [self._tensor(b, tensor, position + 1) for position, tensor in enumerate(self.tensors)]
        kinds = list(dict.fromkeys(kind for kind, *_ in self.operators))
        codes = [_code(b, kind) for kind in kinds]
        operators = [_operator(b, kinds.index(kind), *rest) for kind, *rest in self.operators]
        name = b.CreateString("main")
        lists = [_offsets(b, tensors), _ints(b, inputs), _ints(b, outputs), _offsets(b, operators)]
        tflite.SubGraphStart(b)
        for add, value in zip(("Tensors", "Inputs", "Outputs", "Operators"), lists, strict=True):
            getattr(tflite, f"SubGraphAdd{add}")(b, value)
        tflite.SubGraphAddName(b, name)
        graphs = _offsets(b, [tflite.SubGraphEnd(b)])
        lists = [_offsets(b, codes), graphs, _offsets(b, buffers)]
        text = b.CreateString("made by a test")
        tflite.ModelStart(b)
        tflite.ModelAddVersion(b, 3)
        for add, value in zip(("OperatorCodes", "Subgraphs", "Buffers"), lists, strict=True):
            getattr(tflite, f"ModelAdd{add}")(b, value)
        tflite.ModelAddDescription(b, text)
        b.Finish(tflite.ModelEnd(b), b"TFL3")
        return bytes(b.Output())

    def save(self, path: Path, inputs: Sequence[int], outputs: Sequence[int]) -> Path:
        path.write_bytes(self.write(inputs, outputs))
        return path

    @staticmethod
    def _buffer(b: flatbuffers.Builder, data: np.ndarray | None) -> int:
        vector = None
        if data is not None:
            b.StartVector(1, data.nbytes, 16)
            b.head -= data.nbytes
            b.Bytes[b.head : b.head + data.nbytes] = data.tobytes()
            vector = b.EndVector()
        tflite.BufferStart(b)
        if vector is not None:
            tflite.BufferAddData(b, vector)
        return int(tflite.BufferEnd(b))

    @staticmethod
    def _tensor(b: flatbuffers.Builder, tensor: Written, buffer: int) -> int:
        name, shape = b.CreateString(tensor.name), _ints(b, tensor.shape)
        signature = _ints(b, tensor.signature) if tensor.signature else None
        quantization = _quantization(b, tensor) if tensor.scale else None
        sparsity = _sparsity(b, tensor.sparsity) if tensor.sparsity else None
        tflite.TensorStart(b)
        tflite.TensorAddShape(b, shape)
        tflite.TensorAddType(b, TYPES[np.dtype(tensor.dtype)])
        tflite.TensorAddBuffer(b, buffer)
        tflite.TensorAddName(b, name)
        for add, value in (("Quantization", quantization), ("Sparsity", sparsity), ("ShapeSignature", signature)):
            if value is not None:
                getattr(tflite, f"TensorAdd{add}")(b, value)
        return int(tflite.TensorEnd(b))


def _ints(b: flatbuffers.Builder, values: Sequence[int]) -> int:
    return int(b.CreateNumpyVector(np.asarray(values, np.int32)))


def _offsets(b: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    b.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        b.PrependUOffsetTRelative(offset)
    return int(b.EndVector())


def _quantization(b: flatbuffers.Builder, tensor: Written) -> int:
    scale = b.CreateNumpyVector(np.asarray(tensor.scale, np.float32))
    zero_point = b.CreateNumpyVector(np.asarray(tensor.zero_point or [0] * len(tensor.scale), np.int64))
    tflite.QuantizationParametersStart(b)
    tflite.QuantizationParametersAddScale(b, scale)
    tflite.QuantizationParametersAddZeroPoint(b, zero_point)
    tflite.QuantizationParametersAddQuantizedDimension(b, tensor.axis)
    return int(tflite.QuantizationParametersEnd(b))


def _sparsity(b: flatbuffers.Builder, sparsity: Sparsity) -> int:
    order, blocks, levels = sparsity
    made = _offsets(b, [_level(b, level) for level in levels])
    order_vector, block_vector = _ints(b, order), _ints(b, blocks)
    tflite.SparsityParametersStart(b)
    tflite.SparsityParametersAddTraversalOrder(b, order_vector)
    tflite.SparsityParametersAddBlockMap(b, block_vector)
    tflite.SparsityParametersAddDimMetadata(b, made)
    return int(tflite.SparsityParametersEnd(b))


def _level(b: flatbuffers.Builder, level: Any) -> int:
    if isinstance(level, int):
        tflite.DimensionMetadataStart(b)
        tflite.DimensionMetadataAddFormat(b, tflite.DimensionType.DENSE)
        tflite.DimensionMetadataAddDenseSize(b, level)
        return int(tflite.DimensionMetadataEnd(b))
    vectors = []
    for values in level:
        vector = b.CreateNumpyVector(np.asarray(values, np.uint8))
        tflite.Uint8VectorStart(b)
        tflite.Uint8VectorAddValues(b, vector)
        vectors.append(tflite.Uint8VectorEnd(b))
    tflite.DimensionMetadataStart(b)
    tflite.DimensionMetadataAddFormat(b, tflite.DimensionType.SPARSE_CSR)
    for name, vector in zip(("ArraySegments", "ArrayIndices"), vectors, strict=True):
        getattr(tflite, f"DimensionMetadataAdd{name}Type")(b, tflite.SparseIndexVector.Uint8Vector)
        getattr(tflite, f"DimensionMetadataAdd{name}")(b, vector)
    return int(tflite.DimensionMetadataEnd(b))


def _code(b: flatbuffers.Builder, kind: str) -> int:
    number = getattr(tflite.BuiltinOperator, kind, tflite.BuiltinOperator.CUSTOM)
    custom = b.CreateString(kind) if number == tflite.BuiltinOperator.CUSTOM else None
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
    tflite.OperatorCodeAddBuiltinCode(b, number)
    tflite.OperatorCodeAddVersion(b, 1)
    if custom is not None:
        tflite.OperatorCodeAddCustomCode(b, custom)
    return int(tflite.OperatorCodeEnd(b))


def _operator(
    b: flatbuffers.Builder, code: int, inputs: list[int], outputs: list[int], options: Options, custom: bytes
) -> int:
    table = None
    if options is not None:
        name, values = options
        vectors = {key: _ints(b, value) if isinstance(value, list) else value for key, value in values.items()}
        getattr(tflite, f"{name}Start")(b)
        for key, value in vectors.items():
            getattr(tflite, f"{name}Add{key}")(b, value)
        table = getattr(tflite, f"{name}End")(b)
    custom_vector = b.CreateByteVector(custom) if custom else None
    lists = _ints(b, inputs), _ints(b, outputs)
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, code)
    tflite.OperatorAddInputs(b, lists[0])
    tflite.OperatorAddOutputs(b, lists[1])
    if options is not None:
        tflite.OperatorAddBuiltinOptionsType(b, getattr(tflite.BuiltinOptions, options[0]))
        tflite.OperatorAddBuiltinOptions(b, table)
    if custom_vector is not None:
        tflite.OperatorAddCustomOptions(b, custom_vector)
    return int(tflite.OperatorEnd(b))
