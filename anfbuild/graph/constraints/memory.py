"""What does not fit on the chip, and what must wait for what."""

from __future__ import annotations

from collections.abc import Iterator

from anfbuild.graph.constraints.rule import Hit, Severity, rule
from anfbuild.graph.constraints.scene import Node, Scene


@rule(
    Severity.WARNING,
    consequence="It cannot stay on the chip between two layers: its parts are spilled to DRAM and filled again.",
    remedy="Lower the input's size, let an earlier layer stride, or choose 8-bit activations or a chip with more VTCM.",
)
def activation_over_vtcm(scene: Scene) -> Iterator[Hit]:
    """An activation that is larger than the HTP's on-chip memory."""
    for node in scene.nodes:
        if not scene.works(node):
            continue
        size = max((scene.bytes(name) for name in node.outputs), default=0)
        if size > scene.aim.vtcm_bytes:
            yield Hit(node, f"{size / 2**20:.1f} MiB, {scene.aim.target} has {scene.aim.vtcm_mb}")


@rule(
    Severity.NOTE,
    consequence="However many units work at once, these nodes follow one another, and what they hand on is written and "
    "read once each at least.",
    remedy="Fewer, wider layers wait less than many narrow ones.",
)
def longest_chain(scene: Scene) -> Iterator[Hit]:
    """The longest chain of nodes that each need the one before."""
    length: dict[str, int] = {}
    before: dict[int, Node] = {}
    last: tuple[int, Node | None] = (0, None)
    for node in scene.nodes:
        if not scene.works(node):
            continue
        made = [name for name in node.reads if name in length]
        nearest = max(made, key=lambda name: length[name], default=None)
        if nearest is not None:
            before[node.position] = scene.producers[nearest]
        depth = 1 + (length[nearest] if nearest is not None else 0)
        length.update(dict.fromkeys(node.outputs, depth))
        last = max(last, (depth, node), key=lambda entry: entry[0])
    depth, end = last
    if end is None or depth < 2:
        return
    chain = [end]
    while chain[-1].position in before:
        chain.append(before[chain[-1].position])
    handed_on = sum(scene.bytes(node.outputs[0]) for node in chain[1:])
    yield Hit(end, f"{depth} nodes, from {chain[-1].label} to {end.label}; {handed_on / 1e6:.2f} MB between them")
