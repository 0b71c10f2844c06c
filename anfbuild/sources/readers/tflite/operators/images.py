"""Pooling, resizing, and moving blocks between space and channels: the order of dimensions matters to all of them."""

from __future__ import annotations

import functools

import tflite

from anfbuild.errors import StepError
from anfbuild.sources.readers.tflite.builder import FIRST, Builder
from anfbuild.sources.readers.tflite.operators.common import Converters, by_layout
from anfbuild.sources.readers.tflite.operators.convolutions import window_pads
from anfbuild.sources.readers.tflite.source import Operator


def _pool(kind: str, builder: Builder, operator: Operator) -> None:
    value = operator.inputs[0]
    kernel = (operator.option("FilterHeight"), operator.option("FilterWidth"))
    strides = (operator.option("StrideH"), operator.option("StrideW"))
    pads = window_pads(builder, operator, kernel, strides)
    name = builder.value(value, FIRST)
    if kernel == builder.shape(value)[1:3] and operator.option("Padding") == tflite.Padding.VALID:
        made = builder.node(f"Global{kind}", [name])
    else:
        made = builder.node(kind, [name], kernel_shape=kernel, strides=strides, pads=pads)
    builder.put(operator.outputs[0], made, FIRST, operator.option("FusedActivationFunction", 0))


def _resize(mode: str, builder: Builder, operator: Operator) -> None:
    """Bilinear and nearest: nearest rounds half up where it does not take the floor."""
    value = operator.inputs[0]
    if operator.option("AlignCorners", False):
        coordinates, nearest = "align_corners", "round_prefer_ceil"
    elif operator.option("HalfPixelCenters", False):
        coordinates, nearest = "half_pixel", "round_prefer_ceil"
    else:
        coordinates, nearest = "asymmetric", "floor"
    sizes = builder.array(by_layout(builder.shape(operator.outputs[0]), FIRST))
    attributes = {"nearest_mode": nearest} if mode == "nearest" else {}
    made = builder.node(
        "Resize",
        [builder.value(value, FIRST), "", "", sizes],
        mode=mode,
        coordinate_transformation_mode=coordinates,
        **attributes,
    )
    builder.put(operator.outputs[0], made, FIRST)


def _blocks(kind: str, builder: Builder, operator: Operator) -> None:
    size = operator.option("BlockSize")
    if size is None or size < 1:
        raise StepError(f"a block of size {size} makes no sense")
    made = builder.node(kind, [builder.value(operator.inputs[0], FIRST)], blocksize=size)
    builder.put(operator.outputs[0], made, FIRST)


CONVERTERS: Converters = {
    "AVERAGE_POOL_2D": functools.partial(_pool, "AveragePool"),
    "MAX_POOL_2D": functools.partial(_pool, "MaxPool"),
    "RESIZE_BILINEAR": functools.partial(_resize, "linear"),
    "RESIZE_NEAREST_NEIGHBOR": functools.partial(_resize, "nearest"),
    "SPACE_TO_DEPTH": functools.partial(_blocks, "SpaceToDepth"),
    "DEPTH_TO_SPACE": functools.partial(_blocks, "DepthToSpace"),
}
