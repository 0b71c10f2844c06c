"""From a TensorFlow Lite file to an ONNX model that computes the same function."""

from __future__ import annotations

from pathlib import Path

import onnx

from anfbuild import graph
from anfbuild.errors import AnfbuildError, StepError
from anfbuild.sources.readers.tflite.builder import Builder
from anfbuild.sources.readers.tflite.operators import CONVERTERS
from anfbuild.sources.readers.tflite.source import Operator, Source

_DAMAGED = "Export the model again, or fetch it again and pin its SHA-256."
_WITHOUT = "Export the model without it, or convert it to ONNX with a tool that knows it and name that file."


def read_tflite(path: Path) -> onnx.ModelProto:
    """The model in `path`: float or, where its tensors carry encodings, with QuantizeLinear and DequantizeLinear.

    Inputs and outputs keep names, types and shapes: images stay [N, H, W, C]. Constants of 16-bit floats and sparse
    ones become plain float32. The opset is 17. Raises StepError naming the file and, where it is about one, the
    operator with its number, for a damaged file and for what is not supported.
    """
    place = str(path)
    try:
        builder = Builder(Source(path.read_bytes()))
        for operator in builder.source.operators():
            place = f"{path}, operator {operator.index} ({operator.kind})"
            _convert(builder, operator)
        place = str(path)
        model = builder.finish()
    except AnfbuildError as error:
        raise StepError(error.what, where=place, choices=error.choices, remedy=error.remedy or _DAMAGED) from error
    except Exception as error:  # a flatbuffer is not verified before it is read: any field may lead anywhere
        raise StepError(
            f"not a sound TensorFlow Lite file, or cut short: {type(error).__name__}: {error}",
            where=place,
            remedy=_DAMAGED,
        ) from error
    graph.check(model, where=str(path))
    return model


def _convert(builder: Builder, operator: Operator) -> None:
    if operator.kind not in CONVERTERS:
        names = [builder.source.tensor(index).name for index in operator.outputs]
        raise StepError(f"the operator is not supported; it makes {', '.join(map(repr, names))}", remedy=_WITHOUT)
    builder.begin(operator)
    CONVERTERS[operator.kind](builder, operator)
