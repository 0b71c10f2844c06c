"""BatchNormalization in inference mode: one scale and one shift a channel."""

from __future__ import annotations

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, attribute
from anfbuild.graph.linear import Affine

_DEFAULT_EPSILON = 1e-5  # ONNX, BatchNormalization


def batchnorm(index: GraphIndex, node: onnx.NodeProto) -> Affine | str:
    """What the node computes, or why that is not known before it runs.

    With s = gamma / sqrt(variance + epsilon): s(x - mean) + beta = sx + (beta - s mean).
    """
    if attribute(node, "training_mode", 0) or len([name for name in node.output if name]) > 1:
        return "it is in training mode"
    values = [index.value(name) for name in node.input[1:]]
    parameters = [value.astype(np.float64) for value in values if value is not None]
    if len(parameters) < len(values):
        return "its parameters are computed"
    gamma, beta, mean, variance = parameters
    epsilon = next((entry.f for entry in node.attribute if entry.name == "epsilon"), _DEFAULT_EPSILON)
    if not (variance + epsilon > 0).all():
        return "a variance of it is not above zero"
    scale = gamma / np.sqrt(variance + epsilon)
    return Affine(scale, beta - mean * scale)
