"""Constants per channel go into the convolution before them, and nothing else does."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, op_types

from anfbuild.graph.passes import fold_affine


def convolution_then(op, shape, *, swap=False, bias=False, transposed=False, outputs=("y",)):
    """x (1, 4, 5, 6) -> Conv or ConvTranspose to 6 channels, 1x1 -> op with a constant of `shape`."""
    b = Builder()
    inputs = ["x", b.weights(4, 6, 1, 1) if transposed else b.weights(6, 4, 1, 1)] + ([b.weights(6)] if bias else [])
    hidden = b.node("ConvTranspose" if transposed else "Conv", inputs, "hidden")
    arguments = [hidden, b.weights(*shape)]
    b.node(op, arguments[::-1] if swap else arguments, "y")
    return b.model({"x": [1, 4, 5, 6]}, dict.fromkeys(outputs))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1, 6, 1, 1), (6, 1, 1), (1,), ()])
@pytest.mark.parametrize(
    ("op", "swap"), [("Add", False), ("Add", True), ("Sub", False), ("Mul", False), ("Mul", True), ("Div", False)]
)
def test_a_constant_per_channel_is_folded(op, swap, shape, bias, transposed):
    model = convolution_then(op, shape, swap=swap, bias=bias, transposed=transposed)
    before = onnx.ModelProto.FromString(model.SerializeToString())
    assert fold_affine.run(model).changed == 1
    assert op_types(model) == ["ConvTranspose" if transposed else "Conv"]
    assert_same_floats(before, model, x=[1, 4, 5, 6])


@pytest.mark.parametrize(
    "model",
    [
        convolution_then("Sub", (6, 1, 1), swap=True),
        convolution_then("Add", (6,)),  # along the width, which happens to be as long
        convolution_then("Add", (1, 6, 5, 1)),
        convolution_then("Add", (1, 1, 6, 1, 1)),
        convolution_then("Div", (6, 1, 1), swap=True),
        convolution_then("Max", (6, 1, 1)),
        convolution_then("Add", (6, 1, 1), outputs=("y", "hidden")),
    ],
)
def test_anything_else_stays(model):
    before = onnx.ModelProto.FromString(model.SerializeToString())
    assert fold_affine.run(model).changed == 0
    assert model == before


def test_a_chain_is_folded_whole():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(2, 2, 1, 1)])
    hidden = b.node("Add", [hidden, b.weights(2, 1, 1)])
    b.node("Add", [hidden, b.weights(2, 1, 1)], "y")
    model = b.model({"x": [1, 2, 3, 3]}, {"y": None})
    before = onnx.ModelProto.FromString(model.SerializeToString())
    assert fold_affine.run(model).changed == 2
    assert_same_floats(before, model, x=[1, 2, 3, 3])


def test_a_division_by_zero_stays():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(2, 2, 1, 1)])
    b.node("Div", [hidden, b.constant(np.array([[[1.0]], [[0.0]]], np.float32))], "y")
    assert fold_affine.run(b.model({"x": [1, 2, 3, 3]}, {"y": None})).changed == 0


def test_a_shared_bias_is_not_changed_for_others():
    b = Builder()
    bias, shift, weights = b.weights(2), b.weights(2, 1, 1), b.weights(2, 2, 1, 1)
    first = b.node("Add", [b.node("Conv", ["x", weights, bias]), shift])
    b.node("Conv", [first, weights, bias], "y")
    model = b.model({"x": [1, 2, 3, 3]}, {"y": None})
    before = onnx.ModelProto.FromString(model.SerializeToString())
    assert fold_affine.run(model).changed == 1
    assert np.array(model.graph.initializer[0].raw_data).tolist() == before.graph.initializer[0].raw_data
    assert_same_floats(before, model, x=[1, 2, 3, 3])
