"""Fuse a hard swish that is written out, x * clip(x + 3, 0, 6) / 6, into one HardSwish."""

from __future__ import annotations

import onnx

from anfbuild.graph.edit import GraphIndex, PassResult
from anfbuild.graph.rewrite import Replacements

_ULP = 1e-6
"""Relative tolerance of the constants: exporters write 1/6 in float32."""


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 14 and constants to be initializers.

    Ensures that no Add 3 - Clip 0..6 - Mul x - Div 6 chain is left, the last two in either order of multiplication and
    the last as Mul 1/6 too, except where something else reads what lies between. Float-equal: the same function,
    rounded in other places. A quantized model rounds once instead of four times, and does not have to represent
    x + 3 and clip(x + 3) at all, whose steps are coarse against those of the result.
    """
    if not any(node.op_type == "Clip" for node in model.graph.node):
        return PassResult("fuse_hardswish", 0)
    index = GraphIndex(model.graph)
    replacements = Replacements(index)
    for node in model.graph.node:
        chain = _match(index, node)
        if chain is None:
            continue
        source, inner = chain
        fused = onnx.helper.make_node("HardSwish", [source], list(node.output), name=node.name)
        replacements.replace(node, [fused], inner)
    count = replacements.apply()
    return PassResult("fuse_hardswish", count, [f"fused {count} chains of four nodes"] if count else [])


def _match(index: GraphIndex, last: onnx.NodeProto) -> tuple[str, list[onnx.NodeProto]] | None:
    """x, and the three nodes before `last`, where `last` ends a hard swish."""
    scaled = _other(index, last, "Div", 6.0, ordered=True) or _other(index, last, "Mul", 1 / 6)
    product = index.sole_producer(scaled, "Mul") if scaled else None
    if product is None:
        return None
    for source, clipped in (tuple(product.input), tuple(product.input)[::-1]):
        clip = index.sole_producer(clipped, "Clip")
        if clip is None or [_scalar(index, name) for name in clip.input[1:]] != [0.0, 6.0]:
            continue
        shift = index.sole_producer(clip.input[0], "Add")
        if shift is not None and _other(index, shift, "Add", 3.0) == source:
            return source, [shift, clip, product]
    return None


def _other(
    index: GraphIndex, node: onnx.NodeProto, operation: str, constant: float, *, ordered: bool = False
) -> str | None:
    """The input of `node` beside the scalar `constant`, where `node` is that `operation` with it."""
    if node.op_type != operation or node.domain != "" or len(node.input) != 2:
        return None
    sides = [(0, 1)] if ordered else [(0, 1), (1, 0)]
    for value, side in sides:
        found = _scalar(index, node.input[side])
        if found is not None and abs(found - constant) <= _ULP * constant:
            return str(node.input[value])
    return None


def _scalar(index: GraphIndex, name: str) -> float | None:
    value = index.value(name)
    # A single value of a higher rank might raise the rank of what it is added to.
    return float(value.reshape(())) if value is not None and value.size == 1 and value.ndim <= 1 else None
