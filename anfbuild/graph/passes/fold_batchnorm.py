"""Fold BatchNormalization into the convolution before it."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.graph.convolution import find_before
from anfbuild.graph.edit import GraphIndex, PassResult, attribute, remove_nodes

_DEFAULT_EPSILON = 1e-5  # ONNX, BatchNormalization


def run(model: onnx.ModelProto) -> PassResult:
    """Requires constants to be initializers.

    Ensures that no BatchNormalization in inference mode follows a Conv or ConvTranspose, except where the
    convolution's result has other readers, or its weights, its bias or the statistics are computed. What stays is
    noted. Float-equal: with s = gamma / sqrt(variance + epsilon), s (Wx + b - mean) + beta = (sW)x + s (b - mean) +
    beta. A normalization before a convolution stays: padding would not be normalized.
    """
    index = GraphIndex(model.graph)
    folded: list[int] = []
    notes: list[str] = []
    for position, node in enumerate(model.graph.node):
        if node.op_type == "BatchNormalization" and node.domain == "":
            reason = _fold(index, node)
            if reason:
                notes.append(f"{node.name or node.output[0]} stays: {reason}")
            else:
                folded.append(position)
    remove_nodes(model.graph, folded)
    return PassResult("fold_batchnorm", len(folded), [f"folded {len(folded)} nodes"] * bool(folded) + notes)


def _fold(index: GraphIndex, node: onnx.NodeProto) -> str:
    """Fold `node`; returns why not, or an empty string."""
    if attribute(node, "training_mode", 0) or len([name for name in node.output if name]) > 1:
        return "it is in training mode"
    known = index.constants
    if any(name not in known for name in node.input[1:]):
        return "its parameters are computed"
    convolution = find_before(index, node.input[0])
    if convolution is None:
        return "no convolution of which it is the only reader comes before it"
    gamma, beta, mean, variance = (numpy_helper.to_array(known[name]).astype(np.float64) for name in node.input[1:])
    epsilon = next((entry.f for entry in node.attribute if entry.name == "epsilon"), _DEFAULT_EPSILON)
    scale = gamma / np.sqrt(variance + epsilon)
    convolution.scale_and_shift(scale, beta - mean * scale, node.output[0])
    return ""
