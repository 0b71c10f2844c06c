"""Operators that change how numbers are stored. Encodings belong to tensors here, so little is left to do."""

from __future__ import annotations

import numpy as np

from anfbuild.sources.readers.tflite.builder import FIRST, OWN, Builder
from anfbuild.sources.readers.tflite.operators.common import Converters
from anfbuild.sources.readers.tflite.source import Operator


def _quantize(builder: Builder, operator: Operator) -> None:
    """The output's own encoding does it."""
    layout = FIRST if builder.is_first(operator.inputs[0]) else OWN
    builder.put(operator.outputs[0], builder.value(operator.inputs[0], layout), layout)


def _dequantize(builder: Builder, operator: Operator) -> None:
    """Of 16-bit floats, and of dense or sparse constants, the constant; of all else, what there is."""
    value, output = operator.inputs[0], operator.outputs[0]
    constant = builder.constant(value)
    if constant is not None and constant.dtype.kind == "f":
        builder.constants[output] = constant.astype(np.float32)
    else:
        builder.alias(output, value)


def _densify(builder: Builder, operator: Operator) -> None:
    """Constants are dense already."""
    value, output = operator.inputs[0], operator.outputs[0]
    builder.constants[output] = builder.required(value, "the sparse tensor")


CONVERTERS: Converters = {"QUANTIZE": _quantize, "DEQUANTIZE": _dequantize, "DENSIFY": _densify}
