"""Give every node a name of its own, so that reports and traces can speak of it."""

from __future__ import annotations

import onnx

from anfbuild.graph.edit import PassResult


def run(model: onnx.ModelProto) -> PassResult:
    """Requires nothing.

    Ensures that all nodes of the main graph have different names that are not empty. A name that exists stays, with
    the first node that has it; the others are named after their operator and position: the same model always gets
    the same names.
    """
    taken = {node.name for node in model.graph.node}
    seen: set[str] = set()
    changed = 0
    for position, node in enumerate(model.graph.node):
        if not node.name or node.name in seen:
            name = f"{node.op_type}_{position}"
            while name in taken:
                name += "_"
            taken.add(name)
            node.name = name
            changed += 1
        seen.add(node.name)
    return PassResult("name_nodes", changed)
