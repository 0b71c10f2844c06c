"""Remove what no output needs."""

from __future__ import annotations

import onnx

from anfbuild.graph.edit import PassResult, remove_at, used_names


def run(model: onnx.ModelProto) -> PassResult:
    """Requires nodes in topological order, which the checker holds.

    Ensures that every node and initializer is needed by some output. Inputs stay, since callers feed them.
    """
    graph = model.graph
    needed = {value.name for value in graph.output}
    dead = []
    for position, node in reversed(list(enumerate(graph.node))):
        if any(name in needed for name in node.output):
            needed.update(used_names(node))
        else:
            dead.append(position)
    remove_at(graph.node, dead)
    unused = [position for position, tensor in enumerate(graph.initializer) if tensor.name not in needed]
    remove_at(graph.initializer, unused)
    notes = [f"removed {len(dead)} nodes and {len(unused)} initializers"] if dead or unused else []
    return PassResult("remove_dead", len(dead) + len(unused), notes)
