"""Cross-layer equalisation: even out the weight ranges of the channels between two convolutions."""

from __future__ import annotations

import numpy as np
import onnx

from anfbuild.graph.conditioning.result import Conditioned, Rewrite
from anfbuild.graph.edit import GraphIndex
from anfbuild.graph.linear import Affine, Linear, linear

_HOMOGENEOUS = ("Relu", "LeakyRelu")
"""f(sx) = s f(x) for s above zero."""
_FURTHEST = 8
"""Powers of two by which a channel is scaled at most: one that is nearly dead must not blow up the other side."""


def run(model: onnx.ModelProto) -> Conditioned:
    """Requires constants to be initializers.

    Ensures that of every Conv whose result only another Conv reads, a Relu or LeakyRelu between them or not, the ranges
    of the weights that make a channel and of those that read it are as near to each other as a power of two brings
    them: the first is divided by s, the second multiplied by it, one s a channel. Float-equal: f(W x / s) s = f(W x),
    and powers of two round nothing.

    Weights with one scale a tensor keep few codes for channels that are small beside the others; with a scale a channel
    there is nothing to win in the first convolution, and something in the second.
    """
    index = GraphIndex(model.graph)
    readers = {name: node for node in model.graph.node for name in node.input}
    done = Conditioned()
    for node in model.graph.node:
        reader = _reader(index, readers, node)
        first = _conv(index, node) if reader is not None else None
        second = _conv(index, reader) if reader is not None else None
        rewrite = _equalize(first, second) if first is not None and second is not None else None
        if rewrite is not None:
            done.rewrites.append(rewrite)
    return done


def _reader(index: GraphIndex, readers: dict[str, onnx.NodeProto], first: onnx.NodeProto) -> onnx.NodeProto | None:
    """The Conv that alone reads what the Conv `first` makes."""
    if first.op_type != "Conv" or first.domain != "":
        return None
    result = first.output[0]
    for _ in range(2):
        reader = readers.get(result) if index.uses[result] == 1 else None
        if reader is None or reader.domain != "" or reader.input[0] != result:
            return None
        if reader.op_type == "Conv":
            return reader
        if reader.op_type not in _HOMOGENEOUS:
            return None
        result = reader.output[0]
    return None


def _conv(index: GraphIndex, node: onnx.NodeProto) -> Linear | None:
    found = linear(index, node)
    return found if found is not None and found.weights.dtype == np.float32 else None


def _equalize(first: Linear, second: Linear) -> Rewrite | None:
    made = np.abs(first.weights).reshape(first.channels, -1).max(axis=1).astype(np.float64)
    groups, outputs, inputs = second.groups, second.weights.shape[0], second.weights.shape[1]
    grouped = np.abs(second.weights).reshape(groups, outputs // groups, inputs, -1)
    read = grouped.max(axis=(1, 3)).reshape(-1).astype(np.float64)
    alive = (made > 0) & (read > 0)
    if not alive.any():
        return None
    powers = np.zeros(made.size)
    powers[alive] = np.clip(np.round(np.log2(made[alive] / read[alive]) / 2), -_FURTHEST, _FURTHEST)
    scale = np.exp2(powers)
    if not powers.any():
        return None
    old, new = (float(ranges.max() / ranges.min()) for ranges in (made[alive], (made / scale)[alive]))
    if new >= old:  # what reads them is as far apart, the other way
        return None
    nothing = np.zeros(made.size)
    if not second.after(Affine(scale, nothing)):
        return None
    first.then(Affine(1 / scale, nothing))  # weights of float32 within 2^8 of what they were fit
    return Rewrite("equalize", first.node.name, "Conv", old, new)
