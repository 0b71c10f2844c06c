"""Write a BatchNormalization that nothing could take up as what it is: a multiplication and an addition."""

from __future__ import annotations

import onnx

from anfbuild.graph.edit import GraphIndex, PassResult
from anfbuild.graph.linear import Affine
from anfbuild.graph.normalization import batchnorm
from anfbuild.graph.rewrite import Expansion, Replacements
from anfbuild.graph.shapes import infer, known_shapes


def run(model: onnx.ModelProto) -> PassResult:
    """Requires constants to be initializers and fold_affine to have run, which does better where it can.

    Ensures that no BatchNormalization is left, except in training mode, with computed parameters or a variance that is
    not above zero, or on a value of unknown rank: these are noted. Float-equal: sx + (beta - s mean).
    """
    found = [node for node in model.graph.node if node.op_type == "BatchNormalization" and node.domain == ""]
    if not found:
        return PassResult("lower_batchnorm", 0)
    index = GraphIndex(model.graph)
    replacements = Replacements(index)
    shapes = known_shapes(infer(model))
    notes = []
    for node in found:
        affine = batchnorm(index, node)
        if isinstance(affine, Affine) and node.input[0] not in shapes:
            affine = "the rank of its input is not known"
        if isinstance(affine, str):
            notes.append(f"{node.name or node.output[0]} stays: {affine}")
            continue
        made = Expansion(index, node)
        kind = onnx.helper.tensor_dtype_to_np_dtype(index.constants[node.input[1]].data_type)
        per_channel = (-1, *[1] * (len(shapes[node.input[0]]) - 2))
        scale, shift = (value.reshape(per_channel).astype(kind) for value in (affine.scale, affine.shift))
        scaled = made.node("Mul", [node.input[0], made.constant(scale, "scale")])
        made.node("Add", [scaled, made.constant(shift, "shift")], node.output[0])
        replacements.replace(node, made.nodes)
    changed = replacements.apply()
    written = [f"wrote {changed} as Mul and Add"] if changed else []
    return PassResult("lower_batchnorm", changed, written + notes)
