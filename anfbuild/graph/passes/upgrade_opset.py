"""Bring the model to a standard opset that the rest of the house knows."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper, version_converter

from anfbuild.errors import StepError
from anfbuild.graph.edit import PassResult, constants, place
from anfbuild.graph.large import on_skeleton
from anfbuild.graph.provenance import restore

OLDEST = 17
"""The first with LayerNormalization; per-channel quantization needs 13."""
NEWEST = 21


def run(model: onnx.ModelProto) -> PassResult:
    """Requires IR 4 or newer, no initializer among the inputs, constants as initializers where they can be, and the
    standard domain called "".

    Ensures a standard opset from OLDEST to NEWEST, and the same floats. Raises StepError for a newer opset, and for a
    model that cannot be converted.
    """
    found = next((entry.version for entry in model.opset_import if entry.domain == ""), None)
    if found is None or OLDEST <= found <= NEWEST:
        return PassResult("upgrade_opset", 0)
    if found > NEWEST:
        raise StepError(
            f"the model uses opset {found}; up to {NEWEST} is supported", remedy=f"Export it with opset {NEWEST}."
        )
    for node in model.graph.node:
        if found < 13 and node.op_type == "Hardmax" and node.domain == "":
            # Older ones flatten the axes behind theirs; the converter leaves them as they are.
            raise _refused(found, "Hardmax has another meaning from opset 13 on", node)
    try:
        converted, write = on_skeleton(model, lambda whole: version_converter.convert_version(whole, OLDEST))
    except (version_converter.ConvertError, RuntimeError, ValueError) as error:
        raise _refused(found, " ".join(str(error).split())) from error
    if found <= 10:
        _keep_old_resize(converted.graph, found)
    restore(model.graph, converted.graph)
    write()
    return PassResult("upgrade_opset", 1, [f"opset {found} to {OLDEST}"])


def _keep_old_resize(graph: onnx.GraphProto, found: int) -> None:
    """State how Upsample, and Resize of opset 10, find their samples.

    Their coordinates are asymmetric, and nearest takes the floor when it enlarges and the ceiling when it shrinks. The
    converter leaves these attributes out, whose defaults since opset 11 are half_pixel and round_prefer_floor.
    """
    known = constants(graph)
    for node in graph.node:
        if node.op_type != "Resize" or node.domain != "":
            continue
        scales = numpy_helper.to_array(known[node.input[2]]) if node.input[2] in known else np.ones(1)
        attributes = {"coordinate_transformation_mode": "asymmetric"}
        mode = next((entry.s for entry in node.attribute if entry.name == "mode"), b"nearest")
        if mode == b"nearest":
            if scales.min() < 1 < scales.max():
                raise _refused(found, "a nearest Resize enlarges one axis and shrinks another", node)
            attributes["nearest_mode"] = "ceil" if scales.min() < 1 else "floor"
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())


def _refused(found: int, why: str, node: onnx.NodeProto | None = None) -> StepError:
    return StepError(
        f"the model cannot be converted from opset {found} to {OLDEST}: {why}",
        where=place(node) if node else None,
        remedy=f"Export it with opset {OLDEST} or newer.",
    )
