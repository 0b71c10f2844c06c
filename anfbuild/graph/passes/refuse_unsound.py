"""Refuse what would run for ever, and weights that are no numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph.edit import PassResult, constant_value, constants, subgraphs

MOST_TURNS = 1_000_000
"""A trip count above it bounds nothing: exporters write INT64_MAX for a loop that only its condition ends."""

_FLOATS = {
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.DOUBLE,
    onnx.TensorProto.FLOAT16,
    onnx.TensorProto.BFLOAT16,
}


def run(model: onnx.ModelProto) -> PassResult:
    """Requires dead nodes to be gone, so that what model.outputs cuts off is not judged, and constants to be folded.

    Ensures that every Loop, in subgraphs too, has a constant trip count of at most MOST_TURNS, because nothing can
    interrupt a session; and that no constant holds NaN. Infinity is allowed: masks are made of it. Changes nothing.
    Raises StepError naming the node or the tensor.
    """
    _check(model.graph, constants(model.graph))
    return PassResult("refuse_unsound", 0)


def _check(graph: onnx.GraphProto, outer: Mapping[str, onnx.TensorProto]) -> None:
    """Judge `graph`, which sees the constants `outer` and its own."""
    known = {**outer, **constants(graph), **dict(_constant_nodes(graph.node))}
    _check_numbers((tensor.name, tensor) for tensor in graph.initializer)
    _check_numbers(_constant_nodes(graph.node))
    for node in graph.node:
        if node.op_type == "Loop" and node.domain == "":
            _check_turns(node, known)
        for inner in subgraphs(node):
            _check(inner, known)


def _constant_nodes(nodes: Iterable[onnx.NodeProto]) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Name and value of the Constant nodes that subgraphs, and outputs of the graph, keep."""
    values = map(constant_value, nodes)
    yield from ((value.name, value) for value in values if value is not None)


def _check_turns(node: onnx.NodeProto, known: Mapping[str, onnx.TensorProto]) -> None:
    turns = known.get(node.input[0]) if node.input else None
    if turns is None or turns.data_type != onnx.TensorProto.INT64:
        fault = "has no constant number of turns"
    elif (count := int(numpy_helper.to_array(turns).max(initial=0))) > MOST_TURNS:
        fault = f"may take {count} turns, {MOST_TURNS} are allowed"
    else:
        return
    raise StepError(
        f"the loop {fault}: it could run for ever",
        where=f"node {node.name or node.output[0]} (Loop)",
        remedy="Give the loop a fixed number of turns, or cut that part of the model with model.outputs. "
        "The HTP has no loops anyway.",
    )


def _check_numbers(tensors: Iterable[tuple[str, onnx.TensorProto]]) -> None:
    for name, tensor in tensors:
        # The least number of several, of which one is NaN, is NaN; and to find it takes no memory.
        if tensor.data_type in _FLOATS and np.isnan(numpy_helper.to_array(tensor).min(initial=np.inf)):
            raise StepError(
                f"the weights hold NaN, which is no number: tensor {name!r}",
                remedy="Export the trained model again, from a state in which it computes numbers.",
            )
