"""Write a ReduceProd as multiplications of halves."""

from __future__ import annotations

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, PassResult, attribute, reduced_axes
from anfbuild.graph.rewrite import Expansion, Replacements
from anfbuild.graph.shapes import infer, known_shapes


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 13, static input shapes and constants to be initializers.

    Ensures that no ReduceProd is left, except where its axes or shape are not known, or it reduces nothing, or zero
    elements: these are noted. Float-equal: the same factors in another order. The HTP has no ReduceProd.
    """
    found = [node for node in model.graph.node if node.op_type == "ReduceProd" and node.domain == ""]
    if not found:
        return PassResult("lower_reduce_prod", 0)
    index = GraphIndex(model.graph)
    shapes = known_shapes(infer(model))
    replacements = Replacements(index)
    notes = []
    for node in found:
        shape = shapes.get(node.input[0])
        axes = reduced_axes(index, node, len(shape)) if shape is not None else None
        if shape is None or not axes or 0 in shape:
            notes.append(f"{node.name or node.output[0]} stays: its axes or its shape are not known, or empty")
            continue
        made = Expansion(index, node)
        value = node.input[0]
        for axis in axes:
            value = _multiply(made, value, axis, shape[axis])
        kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
        if not attribute(node, "keepdims", 1):
            kept = [size for axis, size in enumerate(shape) if axis not in axes]
        made.node("Reshape", [value, made.constant(np.array(kept, np.int64), "shape")], node.output[0])
        replacements.replace(node, made.nodes)
    changed = replacements.apply()
    written = [f"wrote {changed} as multiplications"] if changed else []
    return PassResult("lower_reduce_prod", changed, written + notes)


def _multiply(made: Expansion, value: str, axis: int, length: int) -> str:
    """The product along `axis`, whose length becomes 1."""
    while length > 1:
        half, odd = divmod(length, 2)
        sizes = [half, half, 1][: 2 + odd]
        parts = made.split("Split", [value, made.constant(np.array(sizes), "halves")], [None] * len(sizes), axis=axis)
        value = made.node("Mul", parts[:2])
        if odd:
            value = made.node("Concat", [value, parts[2]], axis=axis)
        length = half + odd
    return value
