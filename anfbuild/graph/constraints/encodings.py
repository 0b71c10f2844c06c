"""What quantization does to a graph, or cannot do on a chip."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from anfbuild.graph.conditioning.clamp_masks import CARRIES, HUGE
from anfbuild.graph.constraints.rule import Hit, Severity, rule
from anfbuild.graph.constraints.scene import Node, Scene
from anfbuild.graph.passes.upgrade_opset import NEWEST

_WIDE_WEIGHTS = 73
_PER_CHANNEL_OPSET = 13
_TAKES_RANGE = {"Add", "Sub", "Mul", "Where", "Max", "Min", "Expand", "Concat", "Sum"}
"""Operators that hand a constant's range on to their result."""


@rule(
    Severity.ERROR,
    consequence="It is no fallback: the layout pass has rewritten the nodes already, and the session ends (Node ... "
    "was inserted using the NHWC format). The build stops.",
    remedy="Choose quantization=a16w8_per_channel, or a chip with Hexagon v{first} or newer.",
    first=_WIDE_WEIGHTS,
)
def wide_weights(scene: Scene) -> Iterator[Hit]:
    """16-bit weights on an architecture before v{first}, which refuses them."""
    aim = scene.aim
    if aim.precision.quantized and aim.precision.weight_bits == 16 and aim.generation < _WIDE_WEIGHTS:
        yield Hit(None, f"{aim.target} has {aim.arch}")


@rule(
    Severity.ERROR,
    consequence="The compiler accepts float graphs for such chips in part or not at all; nothing is known of what they "
    "would compute.",
    remedy="Choose a quantization scheme, or a chip that computes in half precision.",
)
def missing_fp16(scene: Scene) -> Iterator[Hit]:
    """Half precision on a chip whose HTP does not have it."""
    if not scene.aim.precision.quantized and not scene.aim.fp16:
        yield Hit(None, f"{scene.aim.target}, {scene.aim.arch}")


@rule(
    Severity.WARNING,
    consequence="The HTP rejects it, and the model falls into a partition more for each.",
    remedy="Give the scale unsigned 8 bits per tensor.",
    mended_by="quantize",
)
def layernorm_scale(scene: Scene) -> Iterator[Hit]:
    """The scale of a LayerNormalization with weights per channel, which the HTP rejects as signed 8 bits."""
    if scene.aim.precision.quantized and scene.aim.precision.per_channel:
        for node in scene.live("LayerNormalization"):
            yield Hit(node)


@rule(
    Severity.ERROR,
    consequence="A quantizer writes an invalid graph: encodings per channel came with opset {first}.",
    remedy="Export the model with opset 17 or newer.",
    mended_by="upgrade_opset",
    first=_PER_CHANNEL_OPSET,
)
def old_opset(scene: Scene) -> Iterator[Hit]:
    """Weights per channel in a model of an opset before {first}."""
    if scene.opset < _PER_CHANNEL_OPSET and scene.aim.precision.per_channel:
        yield Hit(None, f"opset {scene.opset}")


@rule(
    Severity.ERROR,
    consequence="The build stops: what its operators mean is not known here.",
    remedy="Export the model with opset {newest}.",
    newest=NEWEST,
)
def new_opset(scene: Scene) -> Iterator[Hit]:
    """A model of an opset after {newest}."""
    if scene.opset > NEWEST:
        yield Hit(None, f"opset {scene.opset}")


@rule(
    Severity.WARNING,
    consequence="All codes are spent on it, and what it is added to has one left: docs/recipes.md has what that costs.",
    remedy="Clamp it in the model to what a softmax can tell from nothing (-50): more than a Softmax reads it.",
    mended_by="clamp_masks",
    limit=f"{HUGE:,.0f}",
)
def unbounded_range(scene: Scene) -> Iterator[Hit]:
    """A constant of {limit} or more, as of an attention mask, in the range of an activation."""
    if not scene.aim.precision.quantized:
        return
    for node in scene.nodes:
        if node.op_type not in _TAKES_RANGE or not scene.works(node):
            continue
        for name in node.inputs:
            value = scene.value(name) if name in scene.constant else None
            if value is not None and value.dtype == np.float32 and value.size and np.abs(value).max() >= HUGE:
                detail = f"{name!r} holds {value.flat[int(np.abs(value).argmax())]:.3g}"
                yield Hit(node, detail, mended=_hides_scores(scene, node))


def _hides_scores(scene: Scene, node: Node) -> bool:
    """Whether all that comes of the node goes into Softmax nodes, as `clamp_masks` asks."""
    pending, seen, found = [node], {node.position}, False
    while pending:
        current = pending.pop()
        if any(name in scene.outputs for name in current.outputs):
            return False
        for reader in (reader for name in current.outputs for reader in scene.readers.get(name, ())):
            if reader.op_type == "Softmax":
                last = len(scene.shapes.get(reader.input(0), ())) - 1
                if reader.attributes.get("axis", -1) not in (-1, last):
                    return False
                found = True
            elif reader.op_type not in CARRIES:
                return False
            elif reader.position not in seen:
                seen.add(reader.position)
                pending.append(reader)
    return found
