"""Fold a constant per channel that is added to or multiplied with the result of a convolution into the convolution."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.graph.convolution import Convolution, find_before
from anfbuild.graph.edit import GraphIndex, PassResult, remove_nodes

# Which input may be the convolution's result: c - Wx and c / Wx are other functions, not another scale and shift.
_SIDES = {"Add": ((0, 1), (1, 0)), "Mul": ((0, 1), (1, 0)), "Sub": ((0, 1),), "Div": ((0, 1),)}


def run(model: onnx.ModelProto) -> PassResult:
    """Requires constants to be initializers.

    Ensures that no Add, Sub, Mul or Div by a constant per output channel follows a Conv or ConvTranspose, except where
    the convolution's result has other readers, or its weights or bias are computed, or the constant is of a rank or
    type that would change the result's, or divides by zero. Float-equal: s(Wx + b) + c = (sW)x + (sb + c).

    Besides the work saved, each node less is one rounding less in a quantized model; and the HTP computes a
    ConvTranspose with an Add of a constant per channel behind it wrongly.
    """
    index = GraphIndex(model.graph)
    folded: list[int] = []
    for position, node in enumerate(model.graph.node):
        if node.domain == "" and node.op_type in _SIDES and _fold(index, node):
            folded.append(position)
    remove_nodes(model.graph, folded)
    return PassResult("fold_affine", len(folded), [f"folded {len(folded)} nodes"] if folded else [])


def _fold(index: GraphIndex, node: onnx.NodeProto) -> bool:
    known = index.constants
    for value, constant in _SIDES[node.op_type]:
        convolution = find_before(index, node.input[value])
        if convolution is None or node.input[constant] not in known:
            continue
        operand = _per_channel(numpy_helper.to_array(known[node.input[constant]]), convolution)
        if operand is None or (node.op_type == "Div" and not operand.all()):
            continue
        convolution.scale_and_shift(*_scale_and_shift(node.op_type, operand), node.output[0])
        return True
    return False


def _scale_and_shift(operation: str, operand: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`operation` with `operand`, one float64 a channel, as what to multiply by and what to add."""
    if operation in ("Mul", "Div"):
        return (operand if operation == "Mul" else 1 / operand), np.zeros_like(operand)
    return np.ones_like(operand), (operand if operation == "Add" else -operand)


def _per_channel(constant: np.ndarray, convolution: Convolution) -> np.ndarray | None:
    """`constant` as one float64 a channel, where broadcasting it over (N, C, spatial...) means that; else None."""
    rank = convolution.rank
    if constant.ndim > rank:
        return None
    aligned = constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
    if aligned.size not in (1, convolution.channels) or aligned.size != aligned.shape[1]:
        return None
    return np.broadcast_to(aligned.reshape(-1).astype(np.float64), (convolution.channels,))
