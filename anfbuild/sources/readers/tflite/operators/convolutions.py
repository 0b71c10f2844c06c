"""Convolutions. Weights are [out, height, width, in] in the file, [1, height, width, out] of depthwise ones."""

from __future__ import annotations

import struct

import tflite

from anfbuild.errors import StepError
from anfbuild.sources.readers.tflite.builder import FIRST, Builder
from anfbuild.sources.readers.tflite.operators.common import Converters
from anfbuild.sources.readers.tflite.source import Operator

_PADDINGS = (tflite.Padding.SAME, tflite.Padding.VALID)


def _convolution(builder: Builder, operator: Operator) -> None:
    value, weights = operator.inputs[:2]
    depthwise = operator.kind == "DEPTHWISE_CONV_2D"
    _, height, width, within = builder.shape(weights)
    channels = builder.shape(value)[3]
    if depthwise:
        group, order = channels, (3, 0, 1, 2)
    else:
        group, order = channels // within, (0, 3, 1, 2)
    kernel = (height, width)
    strides = (operator.option("StrideH"), operator.option("StrideW"))
    dilations = (operator.option("DilationHFactor", 1), operator.option("DilationWFactor", 1))
    names = [builder.value(value, FIRST), builder.permuted(weights, order)]
    if operator.has_input(2):
        names.append(builder.value(operator.inputs[2]))
    made = builder.node(
        "Conv",
        names,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        group=group,
        pads=window_pads(builder, operator, kernel, strides, dilations),
    )
    builder.put(operator.outputs[0], made, FIRST, operator.option("FusedActivationFunction", 0))


def window_pads(
    builder: Builder,
    operator: Operator,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
) -> list[int]:
    """ONNX's pads [top, left, bottom, right] of a window that moves over the first input: the odd one comes last."""
    padding = operator.option("Padding", 0)
    if padding not in _PADDINGS or min(*kernel, *strides, *dilations) < 1:
        raise StepError(
            f"a window of {kernel} with strides {strides}, dilations {dilations} and padding {padding} makes no sense"
        )
    if padding == tflite.Padding.VALID:
        return [0, 0, 0, 0]
    before, after = [], []
    for size, window, stride, dilation in zip(
        builder.shape(operator.inputs[0])[1:3], kernel, strides, dilations, strict=True
    ):
        steps = -(-size // stride)
        total = max((steps - 1) * stride + (window - 1) * dilation + 1 - size, 0)
        before.append(total // 2)
        after.append(total - total // 2)
    return [*before, *after]


def _transposed(builder: Builder, operator: Operator) -> None:
    _, weights, value = operator.inputs[:3]
    bias = operator.inputs[3] if operator.has_input(3) else None
    strides = (operator.option("StrideH"), operator.option("StrideW"))
    same = operator.option("Padding", 0) == tflite.Padding.SAME
    activation = operator.option("FusedActivationFunction", 0)
    _put_transposed(builder, operator, (value, weights, bias), strides, same, activation)


def _transposed_with_bias(builder: Builder, operator: Operator) -> None:
    """MediaPipe's own: its options are the structure of the built-in one, three numbers of 32 bits."""
    value, weights, bias = operator.inputs
    padding, width, height = struct.unpack_from("<3i", operator.custom)
    if padding not in (1, 2):
        raise StepError(f"the padding {padding} is not known", choices=["1 (same)", "2 (valid)"])
    _put_transposed(builder, operator, (value, weights, bias), (height, width), padding == 1, 0)


def _put_transposed(
    builder: Builder,
    operator: Operator,
    reads: tuple[int, int, int | None],
    strides: tuple[int, int],
    same: bool,
    activation: int,
) -> None:
    value, weights, bias = reads
    kernel = builder.shape(weights)[1:3]
    made = builder.shape(operator.outputs[0])[1:3]
    if min(*kernel, *strides) < 1:
        raise StepError(f"a window of {kernel} with strides {strides} makes no sense")
    before, after, missing = [], [], []
    for size, out, window, stride in zip(builder.shape(value)[1:3], made, kernel, strides, strict=True):
        whole = (size - 1) * stride + window
        begin = max((-(-out // stride) - 1) * stride + window - out, 0) // 2 if same else 0
        before.append(begin)
        after.append(max(whole - begin - out, 0))
        missing.append(max(out + begin - whole, 0))
    names = [builder.value(value, FIRST), builder.permuted(weights, (3, 0, 1, 2))]
    if bias is not None:
        names.append(builder.value(bias))
    name = builder.node(
        "ConvTranspose",
        names,
        kernel_shape=kernel,
        strides=strides,
        pads=[*before, *after],
        output_padding=missing,
    )
    builder.put(operator.outputs[0], name, FIRST, activation)


CONVERTERS: Converters = {
    "CONV_2D": _convolution,
    "DEPTHWISE_CONV_2D": _convolution,
    "TRANSPOSE_CONV": _transposed,
    "CUSTOM Convolution2DTransposeBias": _transposed_with_bias,
}
