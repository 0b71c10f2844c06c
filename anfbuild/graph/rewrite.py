"""Putting nodes in the place of others: names that nothing else has, all changes applied in one walk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex
from anfbuild.graph.provenance import Carrier, inherit_all


class Expansion:
    """Nodes that are made for the place of `node`, called after it."""

    def __init__(self, index: GraphIndex, node: onnx.NodeProto) -> None:
        self._index = index
        self._base = node.name or next(name for name in node.output if name)
        self.nodes: list[onnx.NodeProto] = []

    def constant(self, value: np.ndarray, name: str = "constant") -> str:
        """Add an initializer; returns its name."""
        return self._index.add_initializer(f"{self._base}_{name}", value)

    def node(self, operation: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        """Add a node of one output, called `output` where given; returns that name."""
        return self.split(operation, inputs, [output], **attributes)[0]

    def split(
        self, operation: str, inputs: Sequence[str], outputs: Sequence[str | None], **attributes: Any
    ) -> list[str]:
        """Add a node of several outputs; those that are None get names of their own. Returns all names."""
        name = f"{self._base}_{operation}_{len(self.nodes)}"
        names = [output or self._index.fresh(name) for output in outputs]
        self.nodes.append(onnx.helper.make_node(operation, list(inputs), names, name=name, **attributes))
        return names


class Replacements:
    """What takes the place of which nodes of a graph, collected while a pass walks over it."""

    def __init__(self, index: GraphIndex) -> None:
        self._index = index
        self._made: dict[str, list[onnx.NodeProto]] = {}
        self._gone: set[str] = set()

    def __len__(self) -> int:
        """How many nodes are replaced, those that are absorbed not counted."""
        return len(self._made)

    def is_gone(self, node: onnx.NodeProto) -> bool:
        """Whether `node` is replaced or absorbed already."""
        return _key(node) in self._gone

    def replace(
        self, node: onnx.NodeProto, made: Iterable[onnx.NodeProto], absorbed: Sequence[onnx.NodeProto] = ()
    ) -> None:
        """Let `made` take the place of `node` and do the work of `absorbed`, which go too.

        The made nodes inherit the sources of all of them and of the constants that these read.
        """
        old = [node, *absorbed]
        known = self._index.constants
        origins: list[Carrier] = [*old, *(known[name] for other in old for name in other.input if name in known)]
        fresh = list(made)
        inherit_all(fresh, origins)
        self._made[_key(node)] = fresh
        self._gone.update(map(_key, old))

    def apply(self) -> int:
        """Change the graph; returns how many nodes were replaced."""
        if self._gone:
            nodes: list[onnx.NodeProto] = []
            for node in self._index.graph.node:
                key = _key(node)
                nodes += self._made.get(key, () if key in self._gone else (node,))
            del self._index.graph.node[:]
            self._index.graph.node.extend(nodes)
        return len(self)


def _key(node: onnx.NodeProto) -> str:
    """A name that no other node has: that of its first result."""
    return next((name for name in node.output if name), "")
