"""Small questions and edits that the passes share. Names that subgraphs capture from outside count as uses."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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


def constant_value(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """What a Constant node makes, under its name; None for another node, and for strings and sparse tensors."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or len(node.attribute) != 1:
        return None
    stated = node.attribute[0]
    if stated.name == "value" and stated.t.data_type != onnx.TensorProto.STRING:
        tensor = onnx.TensorProto()
        tensor.CopyFrom(stated.t)
        tensor.name = node.output[0]
        return tensor
    arrays: dict[str, Any] = {
        "value_float": np.array(stated.f, np.float32),
        "value_floats": np.array(stated.floats, np.float32),
        "value_int": np.array(stated.i, np.int64),
        "value_ints": np.array(stated.ints, np.int64),
    }
    return onnx.numpy_helper.from_array(arrays[stated.name], node.output[0]) if stated.name in arrays else None


def shape_value(node: onnx.NodeProto, shape: Sequence[int]) -> np.ndarray:
    """What a Shape or Size node returns for a tensor of `shape`."""
    if node.op_type == "Size":
        return np.array(math.prod(shape), np.int64)
    bounds = {entry.name: int(entry.i) for entry in node.attribute}
    return np.array(shape[bounds.get("start", 0) : bounds.get("end", len(shape))], np.int64)


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The graphs in the node's attributes (the branches of If, the bodies of Loop and Scan)."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield attribute.g
        elif attribute.type == onnx.AttributeProto.GRAPHS:
            yield from attribute.graphs


def used_names(node: onnx.NodeProto) -> Iterator[str]:
    """Every tensor that the node reads, once a reading: its inputs, and all that its subgraphs read or return."""
    yield from filter(None, node.input)
    for graph in subgraphs(node) if node.attribute else ():
        for inner in graph.node:
            yield from used_names(inner)
        yield from (value.name for value in graph.output)


def count_uses(graph: onnx.GraphProto) -> Counter[str]:
    """Tensor -> how often it is read, where being a graph output counts as one reading."""
    uses = Counter(value.name for value in graph.output)
    for node in graph.node:
        uses.update(used_names(node))
    return uses


def rename_uses(nodes: Iterable[onnx.NodeProto], names: Mapping[str, str]) -> None:
    """Let `nodes`, and those in their subgraphs, read the tensor `names[old]` in place of every `old`."""
    for node in nodes:
        for position, name in enumerate(node.input):
            if name in names:
                node.input[position] = names[name]
        for inner in subgraphs(node):
            rename_uses(inner.node, names)
            for value in inner.output:
                value.name = names.get(value.name, value.name)


def remove_at(entries: Any, positions: Iterable[int]) -> None:
    """Take those at `positions` out of a repeated field; the others keep their order.

    Deleting one moves all behind it, and adding the others to an empty field would copy their data: a stable sort,
    which moves each once, brings those that go to the end.
    """
    gone = set(positions)
    if gone:
        count = itertools.count()
        entries.sort(key=lambda _: next(count) in gone)
        del entries[-len(gone) :]


class GraphIndex:
    """Who makes and who reads each tensor of a graph, kept true while a pass adds constants and renames outputs."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self.graph = graph
        self.constants = constants(graph)
        self.uses = count_uses(graph)
        self.producers = {name: node for node in graph.node for name in node.output if name}
        """Tensor -> the node that makes it."""
        self._owned: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._taken = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        self._taken |= self.uses.keys() | self.producers.keys()
        for node in graph.node:
            self._taken.update(_names_inside(node))

    def value(self, name: str) -> np.ndarray | None:
        """The constant `name`; None where it is computed."""
        return onnx.numpy_helper.to_array(self.constants[name]) if name in self.constants else None

    def sole_producer(self, tensor: str, *operations: str) -> onnx.NodeProto | None:
        """The standard node of one of `operations` that makes `tensor`, where only one reading of `tensor` exists."""
        node = self.producers.get(tensor)
        is_one = node is not None and node.op_type in operations and node.domain == ""
        return node if is_one and self.uses[tensor] == 1 else None

    def fresh(self, base: str) -> str:
        """A name for a new tensor after `base`, which no other tensor has, in subgraphs neither."""
        name, number = base, self._numbers.get(base, 0)
        while name in self._taken:
            number += 1
            name = f"{base}_{number}"
        self._numbers[base] = number  # so that the next one need not count from the start
        self._taken.add(name)
        return name

    def add_initializer(self, base: str, value: np.ndarray) -> str:
        """Add a constant named after `base`; returns its name, which no other tensor of the graph has."""
        name = self.fresh(base)
        self.constants[name] = self.graph.initializer.add()
        self.constants[name].CopyFrom(onnx.numpy_helper.from_array(value, name))
        self._owned.add(name)
        return name

    def own_initializer(self, name: str, base: str, value: np.ndarray) -> str:
        """Write `value` into the constant `name`, if this index added it, else into a new one, called after `base`.

        Returns the name. What others read stays as it is.
        """
        if name not in self._owned:
            return self.add_initializer(base, value)
        self.constants[name].CopyFrom(onnx.numpy_helper.from_array(value, name))
        return name

    def rename_output(self, node: onnx.NodeProto, new: str) -> None:
        """Let the first output of `node` take over the name `new` from a node that is about to go."""
        del self.producers[node.output[0]]
        node.output[0] = new
        self.producers[new] = node


def _names_inside(node: onnx.NodeProto) -> Iterator[str]:
    """Every name that the subgraphs of `node` give to a tensor."""
    for graph in subgraphs(node):
        yield from (value.name for value in [*graph.input, *graph.initializer])
        for inner in graph.node:
            yield from inner.output
            yield from _names_inside(inner)


def attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    """The integer attribute `name` of the node."""
    return next((int(entry.i) for entry in node.attribute if entry.name == name), default)


def text_attribute(node: onnx.NodeProto, name: str, default: str) -> str:
    """The text attribute `name` of the node."""
    return next((entry.s.decode() for entry in node.attribute if entry.name == name), default)


def list_attribute(node: onnx.NodeProto, name: str) -> list[int] | None:
    """The attribute `name` of the node, a list of integers; None where it has none."""
    return next((list(entry.ints) for entry in node.attribute if entry.name == name), None)


def reduced_axes(index: GraphIndex, node: onnx.NodeProto, rank: int) -> list[int] | None:
    """The axes, from 0, that a Reduce node of any opset reduces; None where they are computed."""
    axes = list_attribute(node, "axes")
    if axes is None and len(node.input) > 1 and node.input[1]:
        value = index.value(node.input[1])
        if value is None:
            return None
        axes = [int(axis) for axis in value]
    if not axes:
        return [] if attribute(node, "noop_with_empty_axes", 0) else list(range(rank))
    return sorted(axis % rank for axis in axes)


def place(node: onnx.NodeProto) -> str:
    """How messages speak of `node`."""
    name = node.name or next((name for name in node.output if name), "(unnamed)")
    return f"node {name} ({node.op_type})"
