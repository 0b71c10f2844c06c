"""Write each Gather that the HTP computes wrongly along the last axis, where it is right."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx

from anfbuild.graph.edit import GraphIndex, PassResult, attribute
from anfbuild.graph.rewrite import Expansion, Replacements
from anfbuild.graph.shapes import infer, known_shapes, known_types

_WRONG_BYTES = (8, 16, 32)
"""What an index takes in one piece: the axes behind its own. So the emulators of v69, v73, v75 and v79 (QNN 2.51) read
other elements, with _LEAST indices or more, whatever the indices and the axes in front; in half precision they do not.
Along the last axis a piece is one element, of at most 2 bytes."""
_LEAST = 32
LARGEST_RANK = 5
"""Of a value on the HTP."""


def is_wrong(data: Sequence[int], axis: int, indices: Sequence[int], byte_widths: Sequence[int]) -> bool:
    """Whether the HTP takes others than a Gather along `axis` states. `data`, `indices`: shapes; `byte_widths`: what an
    element may take (1: 8 bits, 2: 16 bits)."""
    if not data or axis % len(data) == len(data) - 1 or math.prod(indices) < _LEAST:
        return False
    block = math.prod(data[axis % len(data) + 1 :])
    return any(block * width in _WRONG_BYTES for width in byte_widths)


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 13, static input shapes and constants to be initializers.

    Ensures that no Gather of floats is one that the HTP computes wrongly in 8 or 16 bits (`is_wrong`): it becomes a
    Transpose, a Gather along the last axis and a Transpose back. The same numbers. What stays is noted: a result of
    more than 5 axes, and of a value that brings its encoding, which what is written would have none of.
    """
    found = [node for node in model.graph.node if node.op_type == "Gather" and node.domain == ""]
    if not found:
        return PassResult("exact_gather", 0)
    index = GraphIndex(model.graph)
    inferred = infer(model)
    shapes, types = known_shapes(inferred), known_types(inferred)
    for tensor in model.graph.initializer:
        shapes[tensor.name], types[tensor.name] = tuple(tensor.dims), tensor.data_type
    replacements = Replacements(index)
    notes = []
    for node in found:
        data, indices = (shapes.get(name) for name in node.input)
        if data is None or indices is None or types.get(node.input[0]) != onnx.TensorProto.FLOAT:
            continue
        axis = attribute(node, "axis", 0) % max(len(data), 1)
        if not is_wrong(data, axis, indices, (1, 2)):
            continue
        producer = index.producers.get(node.input[0])
        if producer is not None and producer.op_type == "DequantizeLinear":
            notes.append(f"{node.name or node.output[0]} stays, the HTP may compute it wrongly: it has an encoding")
            continue
        if len(data) - 1 + len(indices) > LARGEST_RANK:
            notes.append(f"{node.name or node.output[0]} stays, the HTP may compute it wrongly: it has too many axes")
            continue
        replacements.replace(node, _rewritten(index, node, len(data), axis, len(indices)))
    changed = replacements.apply()
    return PassResult("exact_gather", changed, ([f"turned {changed} nodes"] if changed else []) + notes)


def _rewritten(index: GraphIndex, node: onnx.NodeProto, rank: int, axis: int, index_rank: int) -> list[onnx.NodeProto]:
    made = Expansion(index, node)
    others = [number for number in range(rank) if number != axis]
    constant = index.value(node.input[0])
    if constant is None:
        turned = made.node("Transpose", [node.input[0]], perm=[*others, axis])
    else:
        turned = made.constant(constant.transpose([*others, axis]), "turned")
    taken = made.node("Gather", [turned, node.input[1]], axis=rank - 1)
    back = [*range(axis), *range(rank - 1, rank - 1 + index_rank), *range(axis, rank - 1)]
    made.node("Transpose", [taken], node.output[0], perm=back)
    return made.nodes
