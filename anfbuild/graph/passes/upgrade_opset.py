"""Bring the model to a standard opset that the rest of the house knows."""

from __future__ import annotations

import onnx
from onnx import version_converter

from anfbuild.errors import StepError
from anfbuild.graph.edit import PassResult

OLDEST = 17
"""The first with LayerNormalization; per-channel quantization needs 13."""
NEWEST = 21


def run(model: onnx.ModelProto) -> PassResult:
    """Requires IR 4 or newer, no initializer among the inputs, and the standard domain called "".

    Ensures a standard opset from OLDEST to NEWEST. Raises StepError for a newer one, and for a model that
    onnx.version_converter cannot convert.
    """
    found = next((entry.version for entry in model.opset_import if entry.domain == ""), None)
    if found is None or OLDEST <= found <= NEWEST:
        return PassResult("upgrade_opset", 0)
    if found > NEWEST:
        raise StepError(
            f"the model uses opset {found}; up to {NEWEST} is supported", remedy=f"Export it with opset {NEWEST}."
        )
    try:
        converted = version_converter.convert_version(model, OLDEST)
    except (version_converter.ConvertError, RuntimeError, ValueError) as error:
        raise StepError(
            f"the model cannot be converted from opset {found} to {OLDEST}: {' '.join(str(error).split())}",
            remedy=f"Export it with opset {OLDEST} or newer.",
        ) from error
    model.CopyFrom(converted)
    return PassResult("upgrade_opset", 1, [f"opset {found} to {OLDEST}"])
