"""Small questions and edits that the passes share. Names that subgraphs capture from outside count as uses."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import onnx


@dataclasses.dataclass(frozen=True)
class PassResult:
    """What a pass did to the model that it was given."""

    name: str
    changed: int
    """How many nodes, tensors or dimensions it changed; 0: the model is as it was."""
    notes: list[str] = dataclasses.field(default_factory=list)


def constants(graph: onnx.GraphProto) -> dict[str, onnx.TensorProto]:
    """Name -> initializer, for those that no graph input of the same name can override."""
    overridable = {value.name for value in graph.input}
    return {tensor.name: tensor for tensor in graph.initializer if tensor.name not in overridable}


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in the node's attributes (the branches of If, the bodies of Loop and Scan)."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def used_names(node: onnx.NodeProto) -> Iterator[str]:
    """Every tensor that the node reads, once a reading: its inputs, and all that its subgraphs read or return."""
    yield from (name for name in node.input if name)
    for graph in subgraphs(node):
        for inner in graph.node:
            yield from used_names(inner)
        yield from (value.name for value in graph.output)


def count_uses(graph: onnx.GraphProto) -> Counter[str]:
    """Tensor -> how often it is read, where being a graph output counts as one reading."""
    uses = Counter(value.name for value in graph.output)
    for node in graph.node:
        uses.update(used_names(node))
    return uses


def rename_uses(graph: onnx.GraphProto, old: str, new: str) -> None:
    """Let every node of `graph`, those in subgraphs too, read `new` in place of `old`. Graph outputs stay."""
    for node in graph.node:
        for position, name in enumerate(node.input):
            if name == old:
                node.input[position] = new
        for inner in subgraphs(node):
            rename_uses(inner, old, new)
            for value in inner.output:
                if value.name == old:
                    value.name = new


def remove_nodes(graph: onnx.GraphProto, positions: Iterable[int]) -> None:
    """Take the nodes at `positions` out of the graph; the others keep their order."""
    for position in sorted(positions, reverse=True):
        del graph.node[position]


class GraphIndex:
    """Who makes and who reads each tensor of a graph, kept true while a pass adds constants and renames outputs."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.constants = constants(graph)
        self.uses = count_uses(graph)
        self.producers = {name: node for node in graph.node for name in node.output if name}
        """Tensor -> the node that makes it."""
        self._taken = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        self._taken |= self.uses.keys() | self.producers.keys()

    def add_initializer(self, base: str, value: np.ndarray) -> str:
        """Add a constant named after `base`; returns its name, which no other tensor of the graph has."""
        name, number = base, 0
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._taken.add(name)
        self.constants[name] = self.graph.initializer.add()
        self.constants[name].CopyFrom(onnx.numpy_helper.from_array(value, name))
        return name

    def rename_output(self, node: onnx.NodeProto, new: str) -> None:
        """Let the first output of `node` take over the name `new` from a node that is about to go."""
        del self.producers[node.output[0]]
        node.output[0] = new
        self.producers[new] = node


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """The integer attribute `name` of the node."""
    return next((int(entry.i) for entry in node.attribute if entry.name == name), default)
