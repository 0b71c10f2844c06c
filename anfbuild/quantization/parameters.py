"""The encodings of the constants that a node reads: weights, biases, and data such as the 3 of x + 3."""

from __future__ import annotations

import numpy as np
import onnx

from anfbuild.quantization.encodings import Encoding, bias_encoding, from_range, make_room_for_bias, symmetric
from anfbuild.quantization.schemes import Scheme
from anfbuild.quantization.topology import Topology

_NORMALIZATIONS = {"BatchNormalization", "InstanceNormalization", "LayerNormalization"}
_BIASED = {"Conv", "ConvTranspose", "Gemm"} | _NORMALIZATIONS
"""Operators whose bias is int32. Where it is not, onnxruntime's QNN provider (2.7) computes a normalization in float,
and says nothing."""
_EIGHT_BITS = {"BatchNormalization", "PRelu"}
"""The HTP refuses 16-bit scales and slopes of these (QNN 2.51, "Batchnorm unsupported datatype on HTP")."""


def parameter_encodings(
    node: onnx.NodeProto, topology: Topology, activations: dict[str, Encoding], scheme: Scheme
) -> dict[int, Encoding]:
    """Input index -> encoding, of every float constant that `node` reads as data."""
    constants = {index: name for index, name in topology.data_inputs(node) if name in topology.constants}
    encodings = {
        index: activations[name] if name in activations else data_encoding(topology.constants[name], scheme)
        for index, name in constants.items()
    }
    weights = _weight_inputs(node) & set(constants)
    for index in weights:
        encodings[index] = weight_encoding(node, topology.constants[constants[index]], scheme)
    if 1 in weights and 2 in constants and node.op_type in _BIASED and node.input[0] in activations:
        bias = topology.constants[constants[2]]
        if _adds_to_products(node, bias, topology.constants[constants[1]]):
            scale = activations[node.input[0]].scale[0]
            encodings[1] = make_room_for_bias(encodings[1], bias, scale)
            encodings[2] = bias_encoding(encodings[1], scale)
    return encodings


def data_encoding(values: np.ndarray, scheme: Scheme) -> Encoding:
    """Constants beside the weights are coded as activations are."""
    return from_range(float(values.min(initial=0.0)), float(values.max(initial=0.0)), scheme.activation_bits)


def weight_encoding(node: onnx.NodeProto, values: np.ndarray, scheme: Scheme) -> Encoding:
    """Per output channel (symmetric) where the scheme says so and the operator's kernel takes it; else per tensor.

    Eight bits per tensor are asymmetric: weights of one tensor are often lopsided, and half the codes would be lost.
    """
    axis = None
    if scheme.per_channel:
        axis = {"Conv": 0, "ConvTranspose": 1, "Gemm": 0 if _integer(node, "transB", 0) else 1}.get(node.op_type)
        if node.op_type == "ConvTranspose" and _integer(node, "group", 1) != 1:
            axis = None  # axis 1 is then shared by the groups
    if axis is None and (scheme.weight_bits == 8 or node.op_type in _EIGHT_BITS):
        return from_range(float(values.min(initial=0.0)), float(values.max(initial=0.0)), 8)
    return symmetric(values, scheme.weight_bits, axis)


def _weight_inputs(node: onnx.NodeProto) -> set[int]:
    if node.op_type in _BIASED | _EIGHT_BITS:
        return {1}
    return {0, 1} if node.op_type == "MatMul" else set()


def _adds_to_products(node: onnx.NodeProto, bias: np.ndarray, weight: np.ndarray) -> bool:
    if node.op_type != "Gemm":
        return True
    factors = {a.name: a.f for a in node.attribute if a.name in ("alpha", "beta")}
    width = weight.shape[0] if _integer(node, "transB", 0) else weight.shape[1]
    return bias.shape == (width,) and all(factor == 1 for factor in factors.values())


def _integer(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((a.i for a in node.attribute if a.name == name), default)
