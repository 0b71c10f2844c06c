"""Small models for the tests of this room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from anfbuild.graph import Cleaned, Session
from anfbuild.graph.edit import used_names

Dims = Sequence[int | str]


class Builder:
    """Builds a graph node by node; constants are seeded."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.count = 0

    def constant(self, value: Any, name: str | None = None) -> str:
        self.count += 1
        name = name or f"c{self.count}"
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def weights(self, *shape: int) -> str:
        return self.constant(self.random.standard_normal(shape).astype(np.float32))

    def positive(self, *shape: int) -> str:
        return self.constant(self.random.uniform(0.5, 2.0, shape).astype(np.float32))

    def node(self, op: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        self.count += 1
        output = output or f"t{self.count}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], **attributes))
        return output

    def batchnorm(self, value: str, channels: int, output: str | None = None, **attributes: Any) -> str:
        parameters = [self.positive(channels), self.weights(channels), self.weights(channels), self.positive(channels)]
        return self.node("BatchNormalization", [value, *parameters], output, **attributes)

    def model(
        self,
        inputs: dict[str, Dims],
        outputs: dict[str, Dims | None],
        *,
        opset: int = 17,
        ir: int = 8,
        kind: int = TensorProto.FLOAT,
    ) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "g",
            [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs.items()],
            self.initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
        model.ir_version = ir
        return model


def conv_model(height: int | str = 8, channels: int = 4) -> onnx.ModelProto:
    """x (1, 3, height, 8) -> 3x3 Conv -> Relu -> y."""
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(channels, 3, 3, 3)], pads=[1, 1, 1, 1], name="conv")
    b.node("Relu", [hidden], "y", name="relu")
    return b.model({"x": [1, 3, height, 8]}, {"y": [1, channels, height, 8]})


def copy(model: onnx.ModelProto) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(model.SerializeToString())


def op_types(model: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in model.graph.node]


def assert_same_floats(before: onnx.ModelProto, after: onnx.ModelProto, **shapes: Sequence[int]) -> None:
    """Both models return the same for a random sample, but for rounding."""
    random = np.random.default_rng(1)
    feeds = {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    expected, found = Session(before, threads=1).run(feeds), Session(after, threads=1).run(feeds)
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-4, err_msg=name)


def assert_traced(before: onnx.ModelProto, cleaned: Cleaned, outputs: Sequence[str] | None = None) -> None:
    """Every node has a source, and every source node that an output depends on is one of some node's."""
    assert list(cleaned.provenance) == [node.name for node in cleaned.model.graph.node]
    assert all(cleaned.provenance.values())
    wanted = set(outputs or [value.name for value in before.graph.output])
    needed = set()
    names = [node.name for node in before.graph.node]
    for position, node in reversed(list(enumerate(before.graph.node))):
        if wanted.intersection(node.output):
            wanted.update(used_names(node))
            own = node.name and names.count(node.name) == 1
            needed.add(node.name if own else f"#{position} {node.op_type}")
    assert needed == {name for sources in cleaned.provenance.values() for name in sources}
