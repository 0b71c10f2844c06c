"""What an exporter left in a graph that costs time or says nothing."""

from __future__ import annotations

from collections.abc import Iterator

from anfbuild.graph.constraints.operators import HEAVY
from anfbuild.graph.constraints.rule import Hit, Severity, rule
from anfbuild.graph.constraints.scene import Node, Scene

_LAYOUT = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity"}
_LONG = 3
_LARGE_OUTPUT = 10**6


@rule(
    Severity.NOTE,
    consequence="They cost nothing: the build removes them.",
    remedy="None.",
    mended_by="remove_dead",
)
def dead_nodes(scene: Scene) -> Iterator[Hit]:
    """Nodes that no output of the model depends on."""
    dead = [node for node in scene.nodes if node.position not in scene.alive and not scene.folds(node)]
    if dead:
        more = f" and {len(dead) - 3} more" if len(dead) > 3 else ""
        yield Hit(None, ", ".join(node.label for node in dead[:3]) + more)


@rule(
    Severity.NOTE,
    consequence="Each is work, and a copy from the HTP, in every inference.",
    remedy="Name the outputs that are needed in model.outputs.",
    megabytes=_LARGE_OUTPUT // 10**6,
)
def spare_output(scene: Scene) -> Iterator[Hit]:
    """An output that may be a head which nobody reads: another node goes on with it, or it has more than {megabytes} MB
    beside smaller ones."""
    if len(scene.outputs) < 2:
        return
    least = min(scene.bytes(name) for name in scene.outputs)
    for name in scene.outputs:
        size = scene.bytes(name)
        inner = any(reader.position in scene.alive for reader in scene.readers.get(name, ()))
        if name in scene.producers and (inner or size > max(_LARGE_OUTPUT, 4 * least)):
            yield Hit(scene.producers[name], f"output {name!r}, {size / 1e6:.2f} MB{', read inside' if inner else ''}")


@rule(
    Severity.NOTE,
    consequence="Tools that copy the model into a new one lose them, or fail on them (onnxruntime's QNN preprocessing "
    "crashes). anfbuild keeps them.",
    remedy="None.",
)
def metadata(scene: Scene) -> Iterator[Hit]:
    """The model carries metadata of its own, such as a recogniser's list of characters."""
    if scene.source.metadata_props:
        names = [entry.key for entry in scene.source.metadata_props]
        yield Hit(None, ", ".join(names[:5]) + (" ..." if len(names) > 5 else ""))


@rule(
    Severity.WARNING,
    consequence="Values leave the order that convolutions work in and come back: all bytes move through memory, in "
    "the midst of an execution block; a key layer that ends on the CPU often has such a chain before it.",
    remedy="Export the model in the order that its layers work in, or write the chain as one Reshape or DepthToSpace.",
    least=_LONG,
)
def layout_chain(scene: Scene) -> Iterator[Hit]:
    """A chain of {least} or more nodes, a Transpose among them, that only reorders values between two layers."""
    for chain in _chains(scene):
        moves = [node for node in chain if node.op_type == "Transpose"]
        if len(chain) < _LONG or not moves:
            continue
        before = _heavy(scene, chain[0])
        after = [reader.label for reader in scene.readers.get(chain[-1].outputs[0], ()) if reader.op_type in HEAVY]
        moved = sum(scene.bytes(node.outputs[0]) for node in moves) / 1e6
        sides = f", between {before} and {after[0]}" if before and after else ""
        names = ", ".join(node.label for node in chain[:6]) + (" ..." if len(chain) > 6 else "")
        yield Hit(chain[0], f"{names}; {moved:.2f} MB are moved{sides}")


def _chains(scene: Scene) -> Iterator[list[Node]]:
    """The longest runs of nodes that only reorder, each read by the next alone."""
    seen: set[int] = set()
    for node in scene.nodes:
        chain: list[Node] = []
        link: Node | None = node
        while link is not None and link.position not in seen and link.op_type in _LAYOUT and scene.works(link):
            chain.append(link)
            seen.add(link.position)
            link = scene.sole_reader(link.outputs[0])
        if chain:
            yield chain


def _heavy(scene: Scene, node: Node) -> str | None:
    """A heavy node that makes what `node` reads."""
    found = [scene.producers[name] for name in node.inputs if name in scene.producers]
    return next((other.label for other in found if other.op_type in HEAVY), None)
