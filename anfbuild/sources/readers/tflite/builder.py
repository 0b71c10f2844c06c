"""Writes the ONNX graph: names, constants, encodings, and the order of dimensions that each value is held in.

TensorFlow Lite keeps images channels last, ONNX channels first. A value of four dimensions is held in the order that
the operator gave which made it, and is turned only when an operator asks for the other order. Operators that do not
care take what is there. So turns remain at the model's own ends, which keep their order, and where a Reshape or a
MatMul reads the order itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
import tflite
from onnx import TensorProto, helper

from anfbuild.errors import StepError
from anfbuild.sources.readers.tflite.nodes import MICROSOFT, Nodes
from anfbuild.sources.readers.tflite.source import Encoding, Operator, Source, Tensor

OWN = "own"
"""The order that the file states."""
FIRST = "channels first"
"""[N, C, H, W] of what the file states as [N, H, W, C]."""

TO_FIRST = (0, 3, 1, 2)
TO_OWN = (0, 2, 3, 1)

_BOUNDS: dict[int, tuple[float, float | None]] = {
    tflite.ActivationFunctionType.RELU: (0.0, None),
    tflite.ActivationFunctionType.RELU6: (0.0, 6.0),
    tflite.ActivationFunctionType.RELU_N1_TO_1: (-1.0, 1.0),
}
"""Fused activation -> what it cuts off."""

_WIDE = np.dtype(np.int16)
"""Encoded by com.microsoft's operators: those of ONNX need opset 21 for it."""


class Builder(Nodes):
    """The values of one graph in the making, and the order in which each is held."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.tensor(index).name for index in (*source.inputs, *source.outputs))
        self.source = source
        self.constants: dict[int, np.ndarray] = {}
        """Computed values that turned out to be constant."""
        self._values: dict[int, dict[str, str]] = {}
        self._quantized: dict[str, str] = {}
        self._permuted: dict[tuple[int, tuple[int, ...]], str] = {}
        self._same: dict[int, int] = {}
        self._returned: set[str] = set()
        self._inputs = [self._input(index) for index in dict.fromkeys(source.inputs)]

    # ---- what the file says

    def begin(self, operator: Operator) -> None:
        """What follows belongs to `operator`."""
        self.label = f"_{operator.index}"

    def shape(self, index: int) -> tuple[int, ...]:
        """The shape of a tensor, in the file's own order."""
        return self.source.tensor(index).shape

    def constant(self, index: int) -> np.ndarray | None:
        """What a tensor holds, as it is stored; None for what is computed."""
        index = self._same.get(index, index)
        found = self.constants.get(index)
        return self.source.tensor(index).data if found is None else found

    def required(self, index: int, what: str) -> np.ndarray:
        """The constant at `index`. Raises StepError where it is computed."""
        value = self.constant(index)
        if value is None:
            raise StepError(
                f"{what} is computed while the model runs, which is not supported",
                remedy="Export the model with fixed shapes.",
            )
        return value

    def integers(self, index: int, what: str) -> list[int]:
        """The same, as a list of integers."""
        value = self.required(index, what)
        if value.dtype.kind not in "iu":
            raise StepError(f"{what} is no tensor of integers")
        return [int(item) for item in value.reshape(-1)]

    # ---- values

    def value(self, index: int, layout: str = OWN) -> str:
        """The name of a tensor's value in the order asked for, turned if need be. Below four dimensions, FIRST is that
        of the shape with ones before it, so that it broadcasts."""
        index = self._same.get(index, index)
        held = self._values.setdefault(index, {})
        if layout not in held:
            if self.constant(index) is not None:
                held[layout] = self._constant_value(index, layout)
            elif layout == OWN and FIRST in held:
                held[OWN] = self._turn(index, held[FIRST], TO_OWN)
            elif layout == FIRST and OWN in held:
                held[FIRST] = self._turn(index, held[OWN], TO_FIRST)
            else:
                raise StepError(f"tensor {self.source.tensor(index).name!r} is read before an operator makes it")
        return held[layout]

    def is_first(self, *indices: int) -> bool:
        """Whether one of the tensors is held channels first."""
        real = [self._same.get(index, index) for index in indices]
        return any(FIRST in self._values.get(index, {}) for index in real if self.constant(index) is None)

    def permuted(self, index: int, order: tuple[int, ...]) -> str:
        """A tensor with its dimensions in another order; of a constant, the constant itself."""
        index = self._same.get(index, index)
        key = (index, order)
        if key not in self._permuted:
            constant = self.constant(index)
            if len(self.shape(index)) != len(order):
                raise StepError(
                    f"tensor {self.source.tensor(index).name!r} has {len(self.shape(index))} dimensions, "
                    f"not {len(order)}"
                )
            if constant is None:
                turned = self.node("Transpose", [self.value(index)], perm=order)
                self._permuted[key] = self.encode(index, turned)
            else:
                self._permuted[key] = self._add(index, constant, order)
        return self._permuted[key]

    def reshaped(self, index: int, shape: Sequence[int]) -> str:
        """A tensor's values, in the file's own order, in another shape: no node where it has that shape already."""
        index = self._same.get(index, index)
        held = self._values.get(index, {})
        own = self.shape(index)
        if FIRST in held and OWN not in held and _moves_nothing(own):
            name, found = held[FIRST], tuple(own[axis] for axis in TO_FIRST)
        else:
            name, found = self.value(index), own
        if math.prod(shape) != math.prod(own):
            raise StepError(f"{list(own)} cannot be reshaped to {list(shape)}")
        if found == tuple(shape):
            return name
        return self.encode(index, self.node("Reshape", [name, self.array(list(shape))]))

    def put(self, index: int, name: str, layout: str = OWN, activation: int = 0) -> None:
        """The value `name`, after the fused `activation`, is the tensor `index`, held in the order `layout`."""
        self._values.setdefault(index, {})[layout] = self.encode(index, self.fuse(index, name, activation))

    def fuse(self, index: int, name: str, activation: int) -> str:
        """The value after the activation that is fused into its operator; an encoding without room for what it cuts
        off is the activation already, and what compilers expect."""
        if activation == tflite.ActivationFunctionType.TANH:
            return self.node("Tanh", [name])
        if activation not in _BOUNDS:
            if activation:
                raise StepError(f"the fused activation {activation} is not supported")
            return name
        low, high = _BOUNDS[activation]
        tensor = self.source.tensor(index)
        if (encoding := tensor.encoding) is not None and tensor.dtype.itemsize <= 2:
            info, step = np.iinfo(tensor.dtype.name), float(encoding.scale[0])
            least = (info.min - int(encoding.zero_point[0])) * step
            most = (info.max - int(encoding.zero_point[0])) * step
            if least >= low - step / 2 and (high is None or most <= high + step / 2):
                return name
        if high is None:
            return self.node("Relu", [name])
        return self.node("Clip", [name, self.number(low), self.number(high)])

    def encode(self, index: int, name: str) -> str:
        """The value `name` rounded to the encoding of the tensor `index`, where that has one."""
        tensor = self.source.tensor(index)
        if tensor.encoding is None or tensor.dtype.itemsize > 2:
            self.call(name, tensor.name)
            return name
        self.call(name, f"{tensor.name}_float")
        domain = MICROSOFT if tensor.dtype == _WIDE else ""
        encoding = self._encoding(tensor.encoding, tensor.dtype)
        stored = self.node("QuantizeLinear", [name, *encoding], domain=domain)
        self.call(stored, f"{tensor.name}_quantized")
        result = self.node("DequantizeLinear", [stored, *encoding], domain=domain)
        self.call(result, tensor.name)
        self._quantized[result] = stored
        return result

    def alias(self, index: int, other: int) -> None:
        """From now on, the tensor `index` is another name of `other`."""
        self._same[index] = self._same.get(other, other)

    # ---- the end

    def finish(self) -> onnx.ModelProto:
        """The graph as a model, with the inputs and outputs of the file under their own names."""
        self.label = ""
        outputs = [self._output(index) for index in dict.fromkeys(self.source.outputs)]
        return self.model(self._inputs, outputs, self.source.description)

    def _input(self, index: int) -> onnx.ValueInfoProto:
        tensor = self.source.tensor(index)
        opened = [position for position in tensor.open_dimensions if position]
        if opened:
            raise StepError(
                f"input {tensor.name!r} leaves its dimensions {opened} open (its shape is {list(tensor.shape)})",
                remedy="Export the model with fixed shapes.",
            )
        name = tensor.name
        self.final[name] = name
        if tensor.encoding is not None and tensor.dtype.itemsize <= 2:
            domain = MICROSOFT if tensor.dtype == _WIDE else ""
            name = self.node("DequantizeLinear", [name, *self._encoding(tensor.encoding, tensor.dtype)], domain=domain)
            self._quantized[name] = tensor.name
            self.call(name, f"{tensor.name}_float")
        self._values[index] = {OWN: name}
        return _info(tensor)

    def _output(self, index: int) -> onnx.ValueInfoProto:
        tensor = self.source.tensor(index)
        name = self.value(index)
        if tensor.encoding is not None:
            name = self._quantized.get(name, name)
        if name in self._returned or not self.makes(name):
            name = self.node("Identity", [name])
        self._returned.add(name)
        self.final[name] = tensor.name
        return _info(tensor)

    # ---- within

    def _turn(self, index: int, name: str, order: tuple[int, ...]) -> str:
        """The value turned from one order to the other: a Reshape where no number changes its place."""
        own = self.shape(index)
        if len(own) != 4:
            if order == TO_OWN or len(own) > 4:
                raise StepError(f"a tensor of {len(own)} dimensions has no channels-first order")
            if math.prod(own) == 1 and not own:
                return name
            own = (1,) * (4 - len(own)) + own
            name = self.encode(index, self.node("Reshape", [name, self.array(list(own))]))
        to = tuple(own[axis] for axis in TO_FIRST) if order == TO_FIRST else own
        if _moves_nothing(own):
            turned = self.node("Reshape", [name, self.array(list(to))])
        else:
            turned = self.node("Transpose", [name], perm=order)
        return self.encode(index, turned)

    def _constant_value(self, index: int, layout: str) -> str:
        constant = self.constant(index)
        assert constant is not None
        rank = constant.ndim
        if layout == OWN or not rank:
            return self._add(index, constant, tuple(range(rank)))
        if rank > 4:
            raise StepError(f"a constant of {rank} dimensions has no channels-first order")
        return self._add(index, constant.reshape((1,) * (4 - rank) + constant.shape), TO_FIRST)

    def _add(self, index: int, value: np.ndarray, order: tuple[int, ...]) -> str:
        """An initializer with the dimensions of `value` in `order`; real numbers, behind a DequantizeLinear where the
        tensor has an encoding."""
        tensor = self.source.tensor(index)
        encoding = tensor.encoding if index not in self.constants else None
        array = np.ascontiguousarray(value.transpose(order))
        if array.dtype == np.float16:
            array = array.astype(np.float32)
        if encoding is not None and encoding.axis is not None:
            missing = value.ndim - len(tensor.shape)
            axis = order.index(encoding.axis + missing)
            encoding = Encoding(encoding.scale, encoding.zero_point, axis)
        if encoding is not None and array.dtype == np.int64:  # no DequantizeLinear takes the bias of a 16-bit model
            array = (array * encoding.scale).astype(np.float32)
            encoding = None
        if encoding is None:
            return self.initializer(array, tensor.name)
        name = self.initializer(array, f"{tensor.name}_quantized")
        scales = self._encoding(encoding, array.dtype)
        domain = MICROSOFT if array.dtype == _WIDE else ""
        axis_of = {} if encoding.axis is None else {"axis": encoding.axis}
        real = self.node("DequantizeLinear", [name, *scales], domain=domain, **axis_of)
        self.call(real, tensor.name)
        return real

    def _encoding(self, encoding: Encoding, dtype: np.dtype[np.generic]) -> list[str]:
        """The initializers of scale and zero point; those of 32 bits have none."""
        whole = encoding.axis is None
        scale = encoding.scale[0] if whole else encoding.scale
        zero_point = encoding.zero_point[0] if whole else encoding.zero_point
        scales = [self.array(scale, np.float32)]
        return scales if dtype.itemsize > 2 else [*scales, self.array(zero_point, dtype)]


def _moves_nothing(own: Sequence[int]) -> bool:
    """Whether [N, H, W, C] and [N, C, H, W] hold their numbers in the same order."""
    return own[3] == 1 or own[1] * own[2] == 1


def _info(tensor: Tensor) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(tensor.dtype)
    assert kind != TensorProto.UNDEFINED
    return helper.make_tensor_value_info(tensor.name, kind, list(tensor.shape))
