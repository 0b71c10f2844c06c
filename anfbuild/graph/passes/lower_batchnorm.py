"""Write a BatchNormalization that nothing could take up as what it is: a multiplication and an addition."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from anfbuild.errors import StepError
from anfbuild.graph.edit import GraphIndex, PassResult, place
from anfbuild.graph.linear import OPERATIONS, Affine
from anfbuild.graph.normalization import batchnorm
from anfbuild.graph.rewrite import Expansion, Replacements
from anfbuild.graph.shapes import infer, known_shapes

_MOST = 10
"""So many are named in an error."""


def run(model: onnx.ModelProto, *, strict: bool = False) -> PassResult:
    """Requires constants to be initializers and fold_affine to have run, which does better where it can.

    Ensures that no BatchNormalization is left, except in training mode, with computed parameters or a variance that is
    not above zero, or on a value of unknown rank: these are noted. Float-equal: sx + (beta - s mean). With `strict`,
    none is written: StepError names each that is there, and why nothing took it up.
    """
    found = [node for node in model.graph.node if node.op_type == "BatchNormalization" and node.domain == ""]
    if not found:
        return PassResult("lower_batchnorm", 0)
    index = GraphIndex(model.graph)
    if strict:
        raise _strict_error(index, found)
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


def _strict_error(index: GraphIndex, found: Sequence[onnx.NodeProto]) -> StepError:
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in index.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    lines = [f"\n    {place(node)}: {_why(index, node, readers.get(node.output[0], []))}" for node in found[:_MOST]]
    more = [f"\n    and {len(found) - _MOST} more"] if len(found) > _MOST else []
    return StepError(
        f"{len(found)} BatchNormalization could not be folded, which model.strict forbids:{''.join(lines + more)}",
        where=place(found[0]),
        remedy="Export the model with the normalization folded, or set model.strict=false: it is written as a "
        "multiplication and an addition then.",
    )


def _why(index: GraphIndex, node: onnx.NodeProto, readers: Sequence[onnx.NodeProto]) -> str:
    """Why neither the node before nor the one behind took `node` up."""
    unknown = batchnorm(index, node)
    if isinstance(unknown, str):
        return unknown
    before = index.producers.get(node.input[0])
    if before is not None and before.op_type in OPERATIONS:
        if index.uses[node.input[0]] > 1:
            return f"something else reads what {place(before)} makes"
        return (
            f"{place(before)} before it cannot take it up: its weights are computed, or its result has other channels"
        )
    stands = f"{place(before)} stands before it" if before is not None else "a model input stands before it"
    if len(readers) == 1 and readers[0].op_type in OPERATIONS:
        return f"{stands}, and {place(readers[0])} behind it cannot take up the shift"
    behind = ", ".join(map(place, readers)) or "a model output"
    return f"{stands} and {behind} behind it, neither with weights to fold it into"
