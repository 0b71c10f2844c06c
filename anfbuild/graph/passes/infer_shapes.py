"""Write the static shape of every value into the model."""

from __future__ import annotations

import onnx

from anfbuild.graph.edit import PassResult
from anfbuild.graph.large import on_skeleton
from anfbuild.graph.shapes import infer, value_shapes


def run(model: onnx.ModelProto) -> PassResult:
    """Requires static input shapes and folded constants.

    Ensures that every value of the main graph has a static shape, stated in value_info in the order of the names.
    Raises StepError naming the node where shapes contradict each other, or the node and the value that stays open.
    """
    inferred, write = on_skeleton(model, lambda whole: infer(whole, strict=True))
    value_shapes(inferred)
    made = {name for node in inferred.graph.node for name in node.output}
    values = sorted((v for v in inferred.graph.value_info if v.name in made), key=lambda value: value.name)
    write()
    del model.graph.value_info[:]
    model.graph.value_info.extend(values)
    return PassResult("infer_shapes", len(values))
