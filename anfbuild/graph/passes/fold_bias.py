"""Fold the addition of a constant per channel into the convolution before it."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.graph.convolution import Convolution, find_before
from anfbuild.graph.edit import GraphIndex, PassResult, remove_nodes


def run(model: onnx.ModelProto) -> PassResult:
    """Requires constants to be initializers.

    Ensures that no Add (or Sub) of a constant per output channel follows a Conv or ConvTranspose, except where the
    convolution's result has other readers, or its weights or bias are computed, or the constant is of a rank or type
    that would change the result's. Float-equal: (Wx + b) + c = Wx + (b + c).
    """
    index = GraphIndex(model.graph)
    folded: list[int] = []
    for position, node in enumerate(model.graph.node):
        if node.domain == "" and node.op_type in ("Add", "Sub") and _fold(index, node):
            folded.append(position)
    remove_nodes(model.graph, folded)
    return PassResult("fold_bias", len(folded), [f"folded {len(folded)} nodes"] if folded else [])


def _fold(index: GraphIndex, node: onnx.NodeProto) -> bool:
    known = index.constants
    # c - Wx negates the convolution, so only Wx - c is folded.
    order = [(0, 1), (1, 0)] if node.op_type == "Add" else [(0, 1)]
    for value, constant in order:
        convolution = find_before(index, node.input[value])
        if convolution is None or node.input[constant] not in known:
            continue
        shift = _per_channel(numpy_helper.to_array(known[node.input[constant]]), convolution)
        if shift is None:
            continue
        one = np.ones(convolution.channels)
        convolution.scale_and_shift(one, -shift if node.op_type == "Sub" else shift, node.output[0])
        return True
    return False


def _per_channel(constant: np.ndarray, convolution: Convolution) -> np.ndarray | None:
    """`constant` as one float64 a channel, where broadcasting it over (N, C, spatial...) means that; else None."""
    rank = convolution.rank
    if constant.ndim > rank:
        return None
    aligned = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
    if aligned.size not in (1, convolution.channels) or aligned.size != aligned.shape[1]:
        return None
    return np.broadcast_to(aligned.reshape(-1).astype(np.float64), (convolution.channels,))
