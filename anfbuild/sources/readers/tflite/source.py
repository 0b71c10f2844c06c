"""What a TensorFlow Lite file says, as plain values: tensors with their constants and encodings, and operators."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tflite

from anfbuild.errors import StepError
from anfbuild.sources.readers.tflite.sparse import densify

_DTYPES: dict[int, type[np.generic]] = {
    tflite.TensorType.FLOAT32: np.float32,
    tflite.TensorType.FLOAT16: np.float16,
    tflite.TensorType.FLOAT64: np.float64,
    tflite.TensorType.INT8: np.int8,
    tflite.TensorType.INT16: np.int16,
    tflite.TensorType.INT32: np.int32,
    tflite.TensorType.INT64: np.int64,
    tflite.TensorType.UINT8: np.uint8,
    tflite.TensorType.UINT16: np.uint16,
    tflite.TensorType.UINT32: np.uint32,
    tflite.TensorType.UINT64: np.uint64,
    tflite.TensorType.BOOL: np.bool_,
}
_ENCODED = (np.int8, np.uint8, np.int16, np.int32, np.int64)
"""The types that a scale makes real numbers of; the last two hold biases alone."""


@dataclasses.dataclass(frozen=True)
class Encoding:
    """real = (stored - zero_point) * scale; one value each, or one for each index along `axis`."""

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int | None


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of the file; `data` is null for what is computed."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    data: np.ndarray | None
    encoding: Encoding | None
    open_dimensions: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Operator:
    """An operator of the file. `kind` is its name in the schema, or CUSTOM and its own name."""

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Any
    custom: bytes

    def option(self, name: str, default: Any = None) -> Any:
        """The option `name`, as the schema spells it; `default` where the file holds no options at all."""
        return default if self.options is None else getattr(self.options, name)()

    def has_input(self, position: int) -> bool:
        """Whether the optional input at `position` is given."""
        return position < len(self.inputs) and self.inputs[position] >= 0


class Source:
    """The first subgraph of a file. Raises StepError for what no such file holds."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._model = tflite.Model.GetRootAs(data, 0)
        if self._model.SubgraphsLength() < 1:
            raise StepError("the file holds no graph")
        graph = self._graph = self._model.Subgraphs(0)
        self._tensors: dict[int, Tensor] = {}
        self.count = graph.TensorsLength()
        self.inputs = _indices(graph.InputsLength, graph.Inputs)
        self.outputs = _indices(graph.OutputsLength, graph.Outputs)
        self.description = _text(self._model.Description())
        if not self.outputs:
            raise StepError("the graph has no outputs")

    def operators(self) -> Iterator[Operator]:
        """The operators in the order in which they run."""
        for index in range(self._graph.OperatorsLength()):
            entry = self._graph.Operators(index)
            yield Operator(
                index,
                self._kind(entry.OpcodeIndex()),
                _indices(entry.InputsLength, entry.Inputs),
                _indices(entry.OutputsLength, entry.Outputs),
                _options(entry),
                bytes(entry.CustomOptionsAsNumpy()) if entry.CustomOptionsLength() else b"",
            )

    def tensor(self, index: int) -> Tensor:
        """The tensor `index`. Raises StepError for one that is not there, or whose type has no ONNX counterpart."""
        if not 0 <= index < self.count:
            raise StepError(f"there is no tensor {index}: the file has {self.count}")
        if index not in self._tensors:
            self._tensors[index] = self._read(self._graph.Tensors(index), index)
        return self._tensors[index]

    def _kind(self, index: int) -> str:
        code = self._model.OperatorCodes(index)
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        kind = _operator_names().get(number, f"number {number}")
        return f"CUSTOM {_text(code.CustomCode())}" if kind == "CUSTOM" else kind

    def _read(self, entry: Any, index: int) -> Tensor:
        name = _text(entry.Name()) or f"tensor_{index}"
        if entry.Type() not in _DTYPES:
            known = {number: word for word, number in vars(tflite.TensorType).items() if isinstance(number, int)}
            raise StepError(
                f"tensor {name!r} is of type {known.get(entry.Type(), entry.Type())}, which is not supported",
                choices=[known[number] for number in _DTYPES],
            )
        if entry.IsVariable():
            raise StepError(
                f"tensor {name!r} keeps its value from one run to the next, which is not supported",
                remedy="Export the model with its state as an input and an output.",
            )
        dtype = np.dtype(_DTYPES[entry.Type()])
        shape = tuple(int(entry.Shape(position)) for position in range(entry.ShapeLength()))
        signature = [int(entry.ShapeSignature(position)) for position in range(entry.ShapeSignatureLength())]
        if any(size < 0 for size in shape):
            raise StepError(f"tensor {name!r} has the shape {list(shape)}")
        open_dimensions = tuple(position for position, size in enumerate(signature) if size < 0)
        data = self._constant(entry, name, shape, dtype)
        return Tensor(name, shape, dtype, data, _encoding(entry, dtype, shape, name), open_dimensions)

    def _constant(
        self, entry: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> np.ndarray | None:
        buffer = self._model.Buffers(entry.Buffer())
        if buffer.Offset() > 1:  # behind the flatbuffer, in a file of more than 2 GB
            raw = np.frombuffer(self._data, np.uint8, buffer.Size(), buffer.Offset())
        elif buffer.DataLength():
            raw = buffer.DataAsNumpy()
        else:
            return None
        if raw.nbytes % dtype.itemsize:
            raise StepError(f"the constant {name!r} has {raw.nbytes} bytes, no multiple of {dtype.itemsize}")
        values = raw.view(dtype)
        if (sparsity := entry.Sparsity()) is not None:
            values = densify(values, shape, sparsity, name)
        if values.size != math.prod(shape):
            raise StepError(f"the constant {name!r} has {values.size} values, but its shape is {list(shape)}")
        return values.reshape(shape)


def _encoding(entry: Any, dtype: np.dtype[np.generic], shape: tuple[int, ...], name: str) -> Encoding | None:
    found = entry.Quantization()
    if found is None or not found.ScaleLength() or dtype.type not in _ENCODED:
        return None
    scale = np.array(found.ScaleAsNumpy(), np.float32)
    zero_point = np.array(found.ZeroPointAsNumpy(), np.int64) if found.ZeroPointLength() else np.zeros(1, np.int64)
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        raise StepError(f"the encoding of tensor {name!r} has a scale that is not above 0")
    info = np.iinfo(dtype.name)
    if zero_point.min() < info.min or zero_point.max() > info.max:
        raise StepError(f"the encoding of tensor {name!r} has a zero point outside of {dtype.name}")
    if scale.size == 1:
        return Encoding(scale, zero_point[:1], None)
    axis = found.QuantizedDimension()
    if not 0 <= axis < len(shape) or shape[axis] != scale.size or zero_point.size not in (1, scale.size):
        raise StepError(f"the encoding of tensor {name!r} has {scale.size} scales for the shape {list(shape)}")
    return Encoding(scale, np.broadcast_to(zero_point, scale.shape), axis)


def _options(entry: Any) -> Any:
    table = entry.BuiltinOptions()
    name = _option_names().get(entry.BuiltinOptionsType())
    if table is None or name is None:
        return None
    options = getattr(tflite, name)()
    options.Init(table.Bytes, table.Pos)
    return options


def _indices(length: Callable[[], int], item: Callable[[int], int]) -> tuple[int, ...]:
    return tuple(int(item(position)) for position in range(length()))


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


@functools.cache
def _operator_names() -> dict[int, str]:
    return {number: name for name, number in vars(tflite.BuiltinOperator).items() if isinstance(number, int)}


@functools.cache
def _option_names() -> dict[int, str]:
    names = {number: name for name, number in vars(tflite.BuiltinOptions).items() if isinstance(number, int)}
    return {number: name for number, name in names.items() if number}
