"""Matrix products."""

from __future__ import annotations

import math

import tflite

from anfbuild.errors import StepError
from anfbuild.sources.readers.tflite.builder import Builder
from anfbuild.sources.readers.tflite.operators.common import Converters
from anfbuild.sources.readers.tflite.source import Operator


def _fully_connected(builder: Builder, operator: Operator) -> None:
    """value [..., in] x weights [out, in]: a Gemm over all rows."""
    value, weights = operator.inputs[:2]
    if operator.option("WeightsFormat", 0) != tflite.FullyConnectedOptionsWeightsFormat.DEFAULT:
        raise StepError("weights in shuffled blocks are not supported", remedy="Convert the model without them.")
    _, length = builder.shape(weights)
    rows = math.prod(builder.shape(value)) // max(length, 1)
    names = [builder.reshaped(value, [rows, length]), builder.value(weights)]
    if operator.has_input(2):
        names.append(builder.value(operator.inputs[2]))
    made = builder.node("Gemm", names, transB=1)
    output = operator.outputs[0]
    shape = builder.shape(output)
    activation = operator.option("FusedActivationFunction", 0)
    if len(shape) == 2:
        builder.put(output, made, activation=activation)
    else:
        made = builder.encode(output, builder.fuse(output, made, activation))
        builder.put(output, builder.node("Reshape", [made, builder.array(list(shape))]))


def _batch_matmul(builder: Builder, operator: Operator) -> None:
    names = []
    for index, flag in zip(operator.inputs, ("AdjX", "AdjY"), strict=True):
        rank = len(builder.shape(index))
        order = (*range(rank - 2), rank - 1, rank - 2)
        names.append(builder.permuted(index, order) if operator.option(flag, False) else builder.value(index))
    builder.put(operator.outputs[0], builder.node("MatMul", names))


CONVERTERS: Converters = {"FULLY_CONNECTED": _fully_connected, "BATCH_MATMUL": _batch_matmul}
