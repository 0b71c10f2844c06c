"""Remove nodes that return their input unchanged."""

from __future__ import annotations

import onnx
from onnx import numpy_helper

from anfbuild.graph.edit import PassResult, constants, count_uses, remove_nodes, rename_uses


def run(model: onnx.ModelProto) -> PassResult:
    """Requires constants to be initializers.

    Ensures that no Identity is left, and no Dropout in inference mode whose mask nobody reads, except where the node
    joins a graph output directly to a graph input, a constant, or another graph output. Graph outputs keep their
    names.
    """
    removed: list[int] = []
    for position, node in enumerate(model.graph.node):
        if _changes_nothing(model.graph, node) and _bypass(model.graph, node):
            removed.append(position)
    remove_nodes(model.graph, removed)
    return PassResult("remove_identity", len(removed))


def _changes_nothing(graph: onnx.GraphProto, node: onnx.NodeProto) -> bool:
    if node.domain != "":
        return False
    if node.op_type == "Dropout":
        mask = node.output[1] if len(node.output) > 1 else ""
        if mask and count_uses(graph)[mask]:
            return False
        training = node.input[2] if len(node.input) > 2 else ""
        if not training:
            return True
        value = constants(graph).get(training)
        return value is not None and not numpy_helper.to_array(value).any()
    return node.op_type == "Identity"


def _bypass(graph: onnx.GraphProto, node: onnx.NodeProto) -> bool:
    """Join the readers of the node to its input; False where a graph output forbids it."""
    source, result = node.input[0], node.output[0]
    outputs = {value.name for value in graph.output}
    if result not in outputs:
        rename_uses(graph, result, source)
        return True
    maker = next((other for other in graph.node if source in other.output), None)
    if maker is None or source in outputs:
        return False
    # The output's name must stay, so the tensor takes it over from where it is made.
    for index, name in enumerate(maker.output):
        if name == source:
            maker.output[index] = result
    rename_uses(graph, source, result)
    return True
