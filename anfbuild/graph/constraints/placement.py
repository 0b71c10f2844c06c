"""Where each node of the source model would run, once the build's passes have done their work."""

from __future__ import annotations

import dataclasses
from typing import Literal

from anfbuild.graph.constraints.operators import goes
from anfbuild.graph.constraints.scene import Node, Scene
from anfbuild.graph.constraints.support import verdict
from anfbuild.graph.passes.lower_einsum import ends_in_transpose


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
    placed = [_place(scene, node) for node in scene.nodes]
    for node in reversed(scene.of("Transpose", "Reshape", "Einsum")):
        here = placed[node.position]
        if here.unit != "HTP" or not _transposes(scene, node):
            continue
        readers = [placed[reader.position] for name in node.outputs for reader in scene.readers.get(name, ())]
        live = [reader for reader in readers if reader.unit != "removed"]
        if all(reader.unit == "CPU" for reader in live):
            # The compiler drops the Q and DQ between the two, and the Transpose is left on the CPU's side.
            reason = f"only {live[0].node} reads it, which is on the CPU" if live else "it makes an output of the model"
            placed[node.position] = dataclasses.replace(here, unit="CPU", reason=reason)
    return placed


def _transposes(scene: Scene, node: Node) -> bool:
    """Whether the node is, or ends in, a Transpose, or a Reshape that is taken for one: only sizes of 1 move."""
    if node.op_type == "Transpose":
        return True
    if node.op_type == "Einsum":
        is_written_out = scene.mended.get(node.position) == "lower_einsum"
        return is_written_out and ends_in_transpose(str(node.attributes.get("equation", "")))
    before, after = scene.shapes.get(node.input(0)), scene.shapes.get(node.outputs[0])
    if before is None or after is None or before == after or len(before) != len(after):
        return False
    return [size for size in before if size != 1] == [size for size in after if size != 1]


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
