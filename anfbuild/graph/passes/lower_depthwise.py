"""Write a depthwise 1x1 convolution as what it is: a multiplication, and an addition, for each channel."""

from __future__ import annotations

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, PassResult, attribute, list_attribute
from anfbuild.graph.linear import linear
from anfbuild.graph.rewrite import Expansion, Replacements


def run(model: onnx.ModelProto) -> PassResult:
    """Requires constants to be initializers.

    Ensures that no Conv with constant weights has as many groups as channels and a kernel of one element, except with
    strides or padding, which is noted. Float-equal: wx + b. Quantized per tensor, the HTP computes these wrongly
    wherever a result's scale is below its input's (a gain of 0.17 in place of 1 for weights up to 0.1); a Mul is right.
    """
    grouped = [node for node in model.graph.node if node.op_type == "Conv" and attribute(node, "group", 1) > 1]
    if not grouped:
        return PassResult("lower_depthwise", 0)
    index = GraphIndex(model.graph)
    replacements = Replacements(index)
    notes = []
    for node in grouped:
        groups = attribute(node, "group", 1)
        found = linear(index, node)
        if found is None or found.weights.shape != (groups, 1, *[1] * (found.weights.ndim - 2)):
            continue
        if any(list_attribute(node, "pads") or ()) or any(step != 1 for step in list_attribute(node, "strides") or ()):
            notes.append(f"{node.name or node.output[0]} stays: it has strides or padding")
            continue
        made = Expansion(index, node)
        scale = made.constant(np.ascontiguousarray(found.weights[:, 0]), "scale")
        scaled = made.node("Mul", [node.input[0], scale], node.output[0] if found.bias is None else None)
        if found.bias is not None:
            shift = made.constant(found.bias.reshape(-1, *[1] * (found.weights.ndim - 2)), "shift")
            made.node("Add", [scaled, shift], node.output[0])
        replacements.replace(node, made.nodes)
    changed = replacements.apply()
    written = [f"wrote {changed} as Mul"] if changed else []
    return PassResult("lower_depthwise", changed, written + notes)
