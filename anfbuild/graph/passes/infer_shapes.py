"""Write the static shape of every value into the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx

from anfbuild.errors import StepError
from anfbuild.graph.edit import PassResult, place
from anfbuild.graph.large import on_skeleton
from anfbuild.graph.shapes import infer, value_shapes

LARGEST = 2**31
"""Elements of a value. No phone holds one of 8 GB, and a run on this host would ask for its memory."""


def run(model: onnx.ModelProto) -> PassResult:
    """Requires static input shapes and folded constants.

    Ensures that every value of the main graph has a static shape, stated in value_info in the order of the names.
    Raises StepError naming the node where shapes contradict each other, or the node and the value that stays open
    or has no elements, or more than LARGEST.
    """
    inferred, write = on_skeleton(model, lambda whole: infer(whole, strict=True))
    shapes = value_shapes(inferred)
    for node in inferred.graph.node:
        for name in filter(None, node.output):
            _check_size(node, name, shapes[name])
    made = {name for node in inferred.graph.node for name in node.output}
    values = sorted((v for v in inferred.graph.value_info if v.name in made), key=lambda value: value.name)
    write()
    del model.graph.value_info[:]
    model.graph.value_info.extend(values)
    return PassResult("infer_shapes", len(values))


def _check_size(node: onnx.NodeProto, name: str, shape: Sequence[int]) -> None:
    count = math.prod(shape)
    if not 0 < count <= LARGEST:
        raise StepError(
            f"value {name!r} of shape {list(shape)} has {f'more than {LARGEST}' if count else 'no'} elements",
            where=place(node),
            remedy="Change the shapes of the inputs (model.inputs.*.shape), or cut that part of the model with "
            "model.outputs.",
        )
