"""Constants per channel go into the convolution before them, and nothing else does."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given
from hypothesis import strategies as st

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


def folds(b, left, changed=1, opset=17, **shapes):
    model = b.model(shapes, {"y": None}, opset=opset)
    before = copy(model)
    assert fold_affine.run(model).changed == changed
    assert op_types(model) == left
    assert_same_floats(before, model, **shapes)


@given(
    op=st.sampled_from(["Add", "Sub", "Mul", "Div", "BatchNormalization"]),
    kind=st.sampled_from(["Conv", "Grouped", "ConvTranspose", "Gemm"]),
    padded=st.booleans(),
    bias=st.booleans(),
    before=st.booleans(),
    seed=st.integers(0, 99),
)
def test_it_goes_into_what_makes_or_reads_the_value_exactly_where_it_may(op, kind, padded, bias, before, seed):
    b = Builder(seed)
    shape = [3, 4] if kind == "Gemm" else [1, 4, 5, 5]

    def affine(value, output=None):
        if op == "BatchNormalization":
            return b.batchnorm(value, 4, output)
        return b.node(op, [value, b.positive(*[1] if seed % 2 else [4, *[1] * (len(shape) - 2)])], output)

    def product(value, output=None):
        if kind == "Gemm":
            numbers = {"transB": seed % 2, "alpha": 0.5, "beta": 2.0} if padded else {}
            return b.node("Gemm", [value, b.weights(4, 4), b.weights(4)][: 3 if bias else 2], output, **numbers)
        weights = b.weights(4, 2 if kind == "Grouped" else 4, 3, 3)
        inputs = [value, weights] + ([b.weights(4)] if bias else [])
        pads = {"pads": [1, 0, 1, 0]} if padded else {}
        name = kind if kind == "ConvTranspose" else "Conv"
        return b.node(name, inputs, output, group=2 if kind == "Grouped" else 1, **pads)

    if before:
        product(affine("x"), "y")
    else:
        affine(product("x"), "y")
    shifts = op not in ("Mul", "Div")
    may = not before or kind == "Gemm" or not shifts or (kind != "ConvTranspose" and not padded)
    name = {"Grouped": "Conv"}.get(kind, kind)
    left = [name] if may else ([op, name] if before else [name, op])
    folds(b, left, changed=int(may), x=shape)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("uniform", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_it_goes_through_a_pad_that_stays_one(mode, uniform, before):
    b = Builder()
    pads = b.constant(np.array([0, 0, 1, 2, 0, 0, 1, 0]))
    weights, shift = b.weights(3, 3, 1, 1), b.weights(*[1] if uniform else [3, 1, 1])
    if before:
        hidden = b.node("Pad", [b.node("Add", ["x", shift]), pads], mode=mode)
        b.node("Conv", [hidden, weights], "y")
    else:
        hidden = b.node("Pad", [b.node("Conv", ["x", weights]), pads, b.constant(np.float32(7))], mode=mode)
        b.node("Add", [hidden, shift], "y")
    may = uniform or mode != "constant"
    left = (["Pad", "Conv"] if before else ["Conv", "Pad"]) if may else None
    folds(b, left or (["Add", "Pad", "Conv"] if before else ["Conv", "Pad", "Add"]), changed=int(may), x=[1, 3, 5, 5])


@pytest.mark.parametrize(("rank", "left"), [(2, ["Gemm"]), (3, ["MatMul", "Add"])])
def test_a_matmul_takes_what_fits_its_columns(rank, left):
    b = Builder()
    hidden = b.node("MatMul", [b.node("Div", ["x", b.positive(3)]), b.weights(3, 5)])
    b.node("Add", [b.node("Mul", [hidden, b.weights(5)]), b.weights(5)], "y")
    folds(b, left, changed=4 - len(left), x=[2] * (rank - 1) + [3])


def test_normalization_after_a_matmul_of_rows_becomes_its_bias():
    b = Builder()
    b.batchnorm(b.node("MatMul", ["x", b.weights(3, 5)]), 5, "y")
    folds(b, ["Gemm"], x=[2, 3])
    b = Builder()
    b.batchnorm(b.node("MatMul", ["x", b.weights(3, 5)]), 5, "y")
    folds(b, ["MatMul", "BatchNormalization"], changed=0, x=[2, 5, 3])


def test_what_would_overflow_stays():
    b = Builder()
    large = b.constant(np.array([1e30], np.float32))
    b.node("Mul", [b.node("Conv", ["x", b.constant(np.full((2, 2, 1, 1), 1e30, np.float32))]), large], "y")
    assert fold_affine.run(b.model({"x": [1, 2, 3, 3]}, {"y": None})).changed == 0


def test_a_value_that_others_read_is_not_changed():
    b = Builder()
    shifted = b.node("Add", ["x", b.weights(1)])
    b.node("Add", [b.node("Conv", [shifted, b.weights(3, 3, 1, 1)]), shifted], "y")
    folds(b, ["Add", "Conv", "Add"], changed=0, x=[1, 3, 4, 4])


def test_a_chain_before_a_convolution_is_folded_whole():
    b = Builder()
    hidden = b.node("Add", [b.node("Mul", [b.node("Relu", ["x"]), b.weights(1)]), b.weights(1)])
    b.node("Conv", [hidden, b.weights(3, 3, 1, 1)], "y")
    folds(b, ["Relu", "Conv"], changed=2, x=[1, 3, 4, 4])


def test_integers_are_left_alone():
    """7 / 2 * 2 is not 7."""
    b = Builder()
    product = b.node("MatMul", [b.node("Cast", ["x"], to=6), b.constant(np.full((3, 3), 7, np.int32))])
    b.node("Cast", [b.node("Div", [product, b.constant(np.int32(2))])], "y", to=1)
    assert fold_affine.run(b.model({"x": [2, 3]}, {"y": None})).changed == 0
