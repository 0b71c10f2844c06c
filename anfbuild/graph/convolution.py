"""A convolution with constant weights, and what can be multiplied and added into it."""

from __future__ import annotations

import dataclasses

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.graph.edit import GraphIndex, attribute


@dataclasses.dataclass(frozen=True)
class Convolution:
    """A Conv or ConvTranspose node whose weights, and bias if any, are initializers."""

    index: GraphIndex
    node: onnx.NodeProto
    weights: np.ndarray
    """Conv: (output channels, input channels of a group, kernel...);
    ConvTranspose: (input channels, output channels of a group, kernel...)."""
    bias: np.ndarray | None

    @property
    def rank(self) -> int:
        """Of the result: (N, C, spatial...)."""
        return self.weights.ndim

    @property
    def groups(self) -> int:
        return attribute(self.node, "group", 1)

    @property
    def channels(self) -> int:
        """Of the result."""
        return int(
            self.weights.shape[1] * self.groups if self.node.op_type == "ConvTranspose" else self.weights.shape[0]
        )

    def scale_and_shift(self, scale: np.ndarray, shift: np.ndarray, output: str) -> None:
        """Let the node make `scale * result + shift`, one float64 a channel each, and call it `output`.

        The new weights are initializers of their own, since other nodes may read the old ones.
        """
        dtype = self.weights.dtype
        weights = self.weights.astype(np.float64)
        if self.node.op_type == "ConvTranspose":
            inputs, outputs, *kernel = weights.shape
            grouped = weights.reshape(self.groups, inputs // self.groups, outputs, -1)
            weights = (grouped * scale.reshape(self.groups, 1, outputs, 1)).reshape(inputs, outputs, *kernel)
        else:
            weights = weights * scale.reshape(-1, *[1] * (self.rank - 1))
        bias = shift if self.bias is None else self.bias.astype(np.float64) * scale + shift
        names = list(self.node.input)
        if np.any(scale != 1):
            names[1] = self.index.add_initializer(f"{names[1]}_folded", weights.astype(dtype))
        base = f"{names[2]}_folded" if self.bias is not None else f"{output}_bias"
        names[2:] = [self.index.add_initializer(base, bias.astype(dtype))]
        del self.node.input[:]
        self.node.input.extend(names)
        self.index.rename_output(self.node, output)


def find_before(index: GraphIndex, tensor: str) -> Convolution | None:
    """The convolution that makes `tensor`, where nothing else reads `tensor` and its weights are constant."""
    node = index.producers.get(tensor)
    if node is None or node.domain != "" or node.op_type not in ("Conv", "ConvTranspose"):
        return None
    known = index.constants
    if index.uses[tensor] != 1 or any(name not in known for name in node.input[1:] if name):
        return None
    bias = known[node.input[2]] if len(node.input) > 2 and node.input[2] else None
    return Convolution(
        index, node, numpy_helper.to_array(known[node.input[1]]), None if bias is None else numpy_helper.to_array(bias)
    )
