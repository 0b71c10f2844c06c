"""A node that computes Wx + b with constant weights, and what can be multiplied and added into it."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, attribute, list_attribute, text_attribute

OPERATIONS = ("Conv", "ConvTranspose", "Gemm", "MatMul")

_FLOATS = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
}


@dataclasses.dataclass(frozen=True)
class Affine:
    """x -> scale * x + shift, one float64 a channel each."""

    scale: np.ndarray
    shift: np.ndarray


@dataclasses.dataclass(frozen=True)
class Linear:
    """A Conv, ConvTranspose, Gemm or MatMul node whose weights, and bias if any, are initializers."""

    index: GraphIndex
    node: onnx.NodeProto
    weights: np.ndarray
    """Conv: (output channels, input channels of a group, kernel...);
    ConvTranspose: (input channels, output channels of a group, kernel...);
    Gemm: (inputs, outputs), or the reverse with transB; MatMul: (inputs, outputs)."""
    bias: np.ndarray | None

    @property
    def kind(self) -> str:
        return str(self.node.op_type)

    @property
    def rank(self) -> int | None:
        """Of the result: (N, C, spatial...), (N, C). None: a MatMul's is that of its input, the channels come last."""
        return None if self.kind == "MatMul" else self.weights.ndim

    @property
    def groups(self) -> int:
        return attribute(self.node, "group", 1)

    @property
    def channels(self) -> int:
        """Of the result."""
        return int(self.weights.shape[self._output_axis] * (self.groups if self.kind == "ConvTranspose" else 1))

    @property
    def channels_in(self) -> int:
        """Of the input."""
        return int(self.weights.shape[1 - self._output_axis] * (self.groups if self.kind == "Conv" else 1))

    @property
    def _output_axis(self) -> int:
        return 0 if self.kind == "Conv" or (self.kind == "Gemm" and attribute(self.node, "transB", 0)) else 1

    def then(self, affine: Affine, *, is_vector: bool = False) -> bool:
        """Let the node make `affine` of its result; False, and nothing is changed, where it cannot.

        `is_vector`: the result of this MatMul is of rank 2, so that it can become a Gemm, which has a bias. The new
        weights are initializers of their own, since other nodes may read the old ones.
        """
        if self.kind == "MatMul" and affine.shift.any() and not is_vector:
            return False
        weights = self._scaled(affine.scale, self._output_axis)
        has_bias = self.bias is not None or affine.shift.any()
        return self._write(weights, self._bias * affine.scale + affine.shift if has_bias else None)

    def after(self, affine: Affine) -> bool:
        """Let the node take x for `affine` of x; False, and nothing is changed, where it cannot.

        Zeros that the node itself pads with would have to be shifted as well; and a ConvTranspose adds each input
        value to several results, at the borders to fewer: a shift is not the same for all of them.
        """
        shifts = affine.shift.any()
        if shifts and (self.kind in ("ConvTranspose", "MatMul") or (self.kind == "Conv" and self._pads)):
            return False
        if self.kind == "Gemm" and attribute(self.node, "transA", 0):
            return False
        bias = self._bias + self._sums(affine.shift) if shifts else None
        return self._write(self._scaled(affine.scale, 1 - self._output_axis), bias)

    @property
    def _pads(self) -> bool:
        mode = text_attribute(self.node, "auto_pad", "NOTSET")
        return mode.startswith("SAME") or (mode == "NOTSET" and any(list_attribute(self.node, "pads") or ()))

    @property
    def _bias(self) -> np.ndarray:
        """What is added to the result as it stands, in float64."""
        bias = np.zeros(self.channels) if self.bias is None else self.bias.astype(np.float64)
        return bias * _number(self.node, "beta") if self.kind == "Gemm" else bias

    def _scaled(self, scale: np.ndarray, axis: int) -> np.ndarray:
        """The weights, multiplied by one number a channel of the input or the result, whose `axis` it is."""
        weights: np.ndarray = self.weights.astype(np.float64)
        if self.kind in ("Gemm", "MatMul"):
            weights *= scale.reshape(1, -1) if axis else scale.reshape(-1, 1)
        elif axis == 0:  # all groups one after another
            weights *= scale.reshape(-1, *[1] * (weights.ndim - 1))
        else:
            grouped = weights.reshape(self.groups, weights.shape[0] // self.groups, weights.shape[1], -1)
            grouped *= scale.reshape(self.groups, 1, -1, 1)
        return weights

    def _sums(self, shift: np.ndarray) -> np.ndarray:
        """What the node makes of an input that is `shift` everywhere, without its bias."""
        if self.kind == "Conv":
            taps = self._scaled(shift, 1)
            return np.asarray(taps.reshape(taps.shape[0], -1).sum(axis=1))
        inputs = 1 - self._output_axis
        return np.asarray(self._scaled(shift, inputs).sum(axis=inputs)) * _number(self.node, "alpha")

    def _write(self, weights: np.ndarray, bias: np.ndarray | None) -> bool:
        """Give the node these weights, and this bias unless None; False where they are too large for their type."""
        with np.errstate(over="ignore"):
            values = {1: weights.astype(self.weights.dtype)}
            if bias is not None:
                values[2] = bias.astype(self.weights.dtype)
        if not all(np.isfinite(value).all() for value in values.values()):
            return False
        if self.kind == "MatMul" and bias is not None:
            self.node.op_type = "Gemm"
        if bias is not None and self.kind == "Gemm":
            kept = [entry for entry in self.node.attribute if entry.name != "beta"]
            del self.node.attribute[:]
            self.node.attribute.extend(kept)
        names = list(self.node.input)
        if np.array_equal(values[1], self.weights):
            del values[1]
        for position, value in values.items():
            old = names[position] if position < len(names) else ""
            base = f"{old}_folded" if old else f"{self.node.output[0]}_bias"
            names[position:] = [self.index.own_initializer(old, base, value), *names[position + 1 :]]
        del self.node.input[:]
        self.node.input.extend(names)
        return True


def linear(index: GraphIndex, node: onnx.NodeProto) -> Linear | None:
    """`node` as a Linear, where it is one."""
    if node.domain != "" or node.op_type not in OPERATIONS or not node.input[0] or node.input[0] in index.constants:
        return None
    if node.input[1] not in index.constants or index.constants[node.input[1]].data_type not in _FLOATS:
        return None  # integers divide and overflow in ways of their own
    weights = index.value(node.input[1])
    biased = len(node.input) > 2 and node.input[2] != ""
    bias = index.value(node.input[2]) if biased else None
    if weights is None or (biased and bias is None) or (node.op_type == "MatMul" and weights.ndim != 2):
        return None
    return Linear(index, node, weights, bias)


def _number(node: onnx.NodeProto, name: str) -> float:
    """The attribute `name` of a Gemm, which is 1 where not stated."""
    return next((float(entry.f) for entry in node.attribute if entry.name == name), 1.0)
