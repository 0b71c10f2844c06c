"""Write the static shape of every value into the model."""

from __future__ import annotations

import math

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
    or has more than LARGEST elements.
    """
    inferred, write = on_skeleton(model, lambda whole: infer(whole, strict=True))
    shapes = value_shapes(inferred)
    for node in inferred.graph.node:
        for name in filter(None, node.output):
            if math.prod(shapes[name]) > LARGEST:
                raise StepError(
                    f"value {name!r} of shape {list(shapes[name])} has more than {LARGEST} elements",
                    where=place(node),
                    remedy="Make the inputs smaller (model.inputs.*.shape), or cut that part of the model with "
                    "model.outputs.",
                )
    made = {name for node in inferred.graph.node for name in node.output}
    values = sorted((v for v in inferred.graph.value_info if v.name in made), key=lambda value: value.name)
    write()
    del model.graph.value_info[:]
    model.graph.value_info.extend(values)
    return PassResult("infer_shapes", len(values))
