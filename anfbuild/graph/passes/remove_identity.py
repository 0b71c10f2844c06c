"""Remove nodes that return their input unchanged."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from onnx import numpy_helper

from anfbuild.graph.edit import (
    PassResult,
    constants,
    count_uses,
    list_attribute,
    remove_at,
    rename_uses,
    subgraphs,
)
from anfbuild.graph.provenance import Carrier, inherit
from anfbuild.graph.shapes import infer, known_shapes, known_types

_SAME_VALUES = {"Reshape", "Flatten", "Expand", "Squeeze", "Unsqueeze", "Tile"}
"""They change the shape alone: nothing, where it stays the same."""
_OF_ONE = {"Concat", "Sum", "Max", "Min", "Mean"}
"""Of one input, they return it."""


def run(model: onnx.ModelProto) -> PassResult:
    """Requires constants to be initializers.

    Ensures that no Identity is left, in subgraphs neither, no Dropout in inference mode whose mask nobody reads, no
    Cast to the type that a value has, no Reshape (Flatten, Expand, Squeeze, Unsqueeze, Tile) to the static shape that
    it has, no Pad by nothing, no Concat (Sum, Max, Min, Mean) of one value, and no Transpose after a Transpose that
    nothing else reads, nor one that keeps the order; except where the node joins a graph output directly to a graph
    input, a constant, or another graph output. Graph outputs keep their names.
    """
    return PassResult("remove_identity", _Removal(model.graph, *_shapes_and_types(model)).run())


def _shapes_and_types(model: onnx.ModelProto) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """What is known of each value, inferred only where a node asks for it."""
    if not any(node.op_type in _SAME_VALUES | {"Cast"} and node.domain == "" for node in model.graph.node):
        return {}, {}
    inferred = infer(model)
    return known_shapes(inferred), known_types(inferred)


class _Removal:
    """One walk over a graph: a node that goes leaves the name of what it returned, for all that come behind it."""

    def __init__(self, graph: onnx.GraphProto, shapes: Mapping[str, tuple[int, ...]], types: Mapping[str, int]) -> None:
        self._graph = graph
        self._shapes = shapes
        self._types = types
        self._outputs = {value.name for value in graph.output}
        self._uses = count_uses(graph)
        self._constants = constants(graph)
        self._makers: dict[str, onnx.NodeProto] = {}
        self._aliases: dict[str, str] = {}
        """Result of a removed node -> what to read in its place."""
        self._renamed: dict[str, str] = {}
        """Value -> the graph output whose name it takes over."""
        self._heirs: dict[str, list[Carrier]] = {}
        """Value -> the removed nodes that returned it."""

    def run(self) -> int:
        removed = []
        inner_removed = 0
        for position, node in enumerate(self._graph.node):
            rename_uses([node], self._aliases)
            inner_removed += sum(_Removal(inner, {}, {}).run() for inner in subgraphs(node))
            self._merge_transposes(node)
            if self._changes_nothing(node) and self._bypass(node):
                removed.append(position)
            else:
                self._makers.update(dict.fromkeys((name for name in node.output if name), node))
        rename_uses(self._graph.node, self._renamed)
        self._hand_on_sources()
        remove_at(self._graph.node, removed)
        return len(removed) + inner_removed

    def _merge_transposes(self, node: onnx.NodeProto) -> None:
        """Let a Transpose behind a Transpose do the work of both."""
        first = self._makers.get(node.input[0]) if node.op_type == "Transpose" and node.domain == "" else None
        if first is None or first.op_type != "Transpose" or first.domain != "":
            return
        orders = list_attribute(first, "perm"), list_attribute(node, "perm")
        if orders == (None, None):
            merged: list[int] = []  # both reverse the axes, of which there may be any number
        elif orders[0] is not None and orders[1] is not None:
            merged = [orders[0][axis] for axis in orders[1]]
        else:
            return
        if self._uses[node.input[0]] > 1 and merged != sorted(merged):
            return
        between = node.input[0]
        self._uses[between] -= 1
        lost = list(self._heirs.get(between, ())) if self._uses[between] else self._heirs.pop(between, [])
        lost.append(first)
        self._heirs[node.output[0]] = lost
        node.input[0] = first.input[0]
        self._uses[node.input[0]] += 1
        del node.attribute[:]
        if merged == sorted(merged):
            node.op_type = "Identity"
        else:
            node.attribute.append(onnx.helper.make_attribute("perm", merged))

    def _changes_nothing(self, node: onnx.NodeProto) -> bool:
        if node.domain != "" or not node.input or not node.input[0]:
            return False
        kind = node.op_type
        if kind == "Dropout":
            return self._drops_nothing(node)
        if kind == "Cast":
            return self._types.get(node.input[0]) == next((e.i for e in node.attribute if e.name == "to"), None)
        if kind in _SAME_VALUES:
            shape = self._shapes.get(node.output[0])
            return shape is not None and shape == self._shapes.get(node.input[0])
        if kind == "Transpose":
            order = list_attribute(node, "perm")
            return order is not None and order == sorted(order)
        if kind == "Pad":
            pads = self._constants.get(node.input[1]) if len(node.input) > 1 else None
            return pads is not None and not numpy_helper.to_array(pads).any()
        return kind == "Identity" or (kind in _OF_ONE and len(node.input) == 1)

    def _drops_nothing(self, node: onnx.NodeProto) -> bool:
        if len(node.output) > 1 and self._uses[node.output[1]]:
            return False
        training = node.input[2] if len(node.input) > 2 else ""
        value = self._constants.get(training)
        return not training or (value is not None and not numpy_helper.to_array(value).any())

    def _bypass(self, node: onnx.NodeProto) -> bool:
        """Join the readers of the node to its input; False where a graph output forbids it."""
        source, result = node.input[0], node.output[0]
        if result in self._outputs:
            maker = self._makers.get(source)
            if maker is None or source in self._outputs or source in self._renamed:
                return False
            # The output's name must stay, so the value takes it over where it is made.
            for index, name in enumerate(maker.output):
                if name == source:
                    maker.output[index] = result
            self._renamed[source] = result
            self._makers[result] = maker
        else:
            self._aliases[result] = source
            self._uses[source] += self._uses[result] - 1
        lost = self._heirs.pop(result, [])
        lost.append(node)
        self._heirs.setdefault(source, []).extend(lost)
        return True

    def _hand_on_sources(self) -> None:
        carriers: dict[str, Carrier] = {value.name: value for value in self._graph.input}
        carriers.update(self._constants)
        carriers.update(self._makers)
        for name, nodes in self._heirs.items():
            if name in carriers:  # a subgraph's node may return what a graph around it makes
                inherit(carriers[name], nodes)
