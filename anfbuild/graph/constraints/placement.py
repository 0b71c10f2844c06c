"""Where each node of the source model would run, once the build's passes have done their work."""

from __future__ import annotations

import dataclasses
from typing import Literal

from anfbuild.graph.constraints.operators import goes
from anfbuild.graph.constraints.scene import Node, Scene
from anfbuild.graph.constraints.support import verdict


@dataclasses.dataclass(frozen=True)
class Placed:
    """A node and its unit. "folded": it computes a constant; "removed": no output depends on it."""

    node: str
    op_type: str
    unit: Literal["HTP", "CPU", "folded", "removed"]
    reason: str
    """Empty for a plain node of the HTP."""

    def to_json(self) -> dict[str, str]:
        """Plain values."""
        return dict(vars(self))


def place(scene: Scene) -> list[Placed]:
    """A prediction for every node, in the order of the model. The rules must have run."""
    return [_place(scene, node) for node in scene.nodes]


def _place(scene: Scene, node: Node) -> Placed:
    if node.position not in scene.alive:
        return Placed(node.label, node.op_type, "removed", "no output depends on it")
    if scene.folds(node):
        return Placed(node.label, node.op_type, "folded", "it computes a constant")
    rewritten_by = goes(scene, node)
    if rewritten_by is not None:
        return Placed(node.label, node.op_type, "HTP", f"rewritten by {rewritten_by}")
    unit, reason = verdict(scene, node)
    if unit == "refused":
        return Placed(node.label, node.op_type, "CPU", f"the compiler fails on it: {reason}")
    return Placed(node.label, node.op_type, unit, reason if unit == "CPU" else "")
