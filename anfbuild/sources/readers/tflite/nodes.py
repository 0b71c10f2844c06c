"""Nodes, initializers and their names, of one ONNX graph in the making."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 17
MICROSOFT = "com.microsoft"


class Nodes:
    """What is written of a graph so far. A name is preliminary until `model` writes all of it."""

    def __init__(self, taken: Iterable[str]) -> None:
        """`taken` are the names that only the ends of the graph may have."""
        self.label = ""
        """What nodes are called by from now on, beside their kind."""
        self.written: list[onnx.NodeProto] = []
        self.final: dict[str, str] = {}
        """Preliminary name -> the one that it becomes."""
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._taken = set(taken)

    def node(self, kind: str, inputs: Sequence[str], *, domain: str = "", **attributes: Any) -> str:
        """Append a node with one output; the name of that."""
        return self.nodes(kind, inputs, 1, domain=domain, **attributes)[0]

    def nodes(
        self, kind: str, inputs: Sequence[str], outputs: int, *, domain: str = "", **attributes: Any
    ) -> list[str]:
        """Append a node with several outputs; their names."""
        name = self._fresh(f"{kind}{self.label}")
        names = [f"\0{name}/{number}" for number in range(outputs)]  # no tensor of a file is called so
        self.written.append(helper.make_node(kind, list(inputs), names, name, domain=domain, **attributes))
        return names

    def array(self, value: Any, dtype: Any = np.int64) -> str:
        """An initializer of integers (or of `dtype`), one for all that hold the same."""
        array = np.asarray(value, dtype)
        name = f"\0{array.dtype.name} {array.shape} {array.tobytes().hex()}"
        if name not in self._initializers:
            self._initializers[name] = numpy_helper.from_array(array, name)
            self.final[name] = self._fresh("constant")
        return name

    def number(self, value: float) -> str:
        """A float32 scalar initializer."""
        return self.array(value, np.float32)

    def initializer(self, value: np.ndarray, wish: str) -> str:
        """An initializer of its own, called `wish` or near to it."""
        name = f"\0initializer {len(self._initializers)}"
        self._initializers[name] = numpy_helper.from_array(value, name)
        self.call(name, wish)
        return name

    def call(self, name: str, wish: str) -> None:
        """Let the preliminary `name` become `wish`, or near to it, unless it has a final one."""
        if name not in self.final:
            self.final[name] = self._fresh(wish)

    def makes(self, name: str) -> bool:
        """Whether a node makes the value `name`."""
        return any(name in node.output for node in self.written)

    def model(
        self, inputs: Sequence[onnx.ValueInfoProto], outputs: Sequence[onnx.ValueInfoProto], description: str
    ) -> onnx.ModelProto:
        """The graph as a model, under its final names."""
        nodes = [self._renamed(node) for node in self.written]
        initializers = list(self._initializers.values())
        for tensor in initializers:
            tensor.name = self.final[tensor.name]
        graph = helper.make_graph(nodes, "tflite", inputs, outputs, initializers, description)
        opsets = [helper.make_opsetid("", OPSET)]
        if any(node.domain == MICROSOFT for node in nodes):
            opsets.append(helper.make_opsetid(MICROSOFT, 1))
        return helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="anfbuild")

    def _fresh(self, wish: str) -> str:
        name, number = wish, 0
        while name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name

    def _renamed(self, node: onnx.NodeProto) -> onnx.NodeProto:
        for names in (node.input, node.output):
            for position, name in enumerate(names):
                if name:
                    self.call(name, f"{node.name}_output")
                    names[position] = self.final[name]
        return node
