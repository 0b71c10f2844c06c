"""BatchNormalization goes into the convolution before it, in every form of convolution, and only where it may."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, op_types
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.graph.passes import fold_batchnorm


def copy(model):
    return onnx.ModelProto.FromString(model.SerializeToString())


@given(
    transposed=st.booleans(),
    groups=st.sampled_from([1, 2, 4]),
    bias=st.booleans(),
    epsilon=st.sampled_from([None, 1e-3, 0.5]),
    spatial=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_it_is_folded_into_any_convolution(transposed, groups, bias, epsilon, spatial, seed):
    channels_in, channels_out = 4, 8
    b = Builder(seed)
    ends = (channels_in, channels_out // groups) if transposed else (channels_out, channels_in // groups)
    inputs = ["x", b.weights(*ends, *[2] * spatial)] + ([b.weights(channels_out)] if bias else [])
    hidden = b.node("ConvTranspose" if transposed else "Conv", inputs, group=groups, pads=[1] * 2 * spatial)
    b.batchnorm(hidden, channels_out, "y", **({} if epsilon is None else {"epsilon": epsilon}))
    model = b.model({"x": [2, channels_in, *[5] * spatial]}, {"y": None})
    before = copy(model)
    assert fold_batchnorm.run(model).notes == ["folded 1 nodes"]
    assert op_types(model) == ["ConvTranspose" if transposed else "Conv"]
    assert_same_floats(before, model, x=[2, channels_in, *[5] * spatial])


def test_shared_weights_are_not_changed_for_others():
    b = Builder()
    weights = b.weights(3, 3, 1, 1)
    hidden = b.batchnorm(b.node("Conv", ["x", weights]), 3)
    b.batchnorm(b.node("Conv", [hidden, weights]), 3, "y")
    model = b.model({"x": [1, 3, 4, 4]}, {"y": None})
    before = copy(model)
    assert fold_batchnorm.run(model).changed == 2
    assert_same_floats(before, model, x=[1, 3, 4, 4])


def stays(model, reason):
    before = copy(model)
    result = fold_batchnorm.run(model)
    assert result.changed == 0
    assert reason in result.notes[0]
    assert model == before


def test_it_stays_where_the_convolution_has_other_readers():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(3, 3, 1, 1)])
    b.node("Add", [b.batchnorm(hidden, 3), hidden], "y")
    stays(b.model({"x": [1, 3, 4, 4]}, {"y": None}), "only reader")


def test_it_stays_where_the_convolution_is_an_output():
    b = Builder()
    b.batchnorm(b.node("Conv", ["x", b.weights(3, 3, 1, 1)], "hidden"), 3, "y")
    stays(b.model({"x": [1, 3, 4, 4]}, {"y": None, "hidden": None}), "only reader")


def test_it_stays_before_a_convolution():
    b = Builder()
    b.node("Conv", [b.batchnorm("x", 3), b.weights(3, 3, 3, 3)], "y", pads=[1, 1, 1, 1])
    stays(b.model({"x": [1, 3, 4, 4]}, {"y": None}), "only reader")


@pytest.mark.parametrize("computed", ["weights", "parameters"])
def test_it_stays_where_something_is_computed(computed):
    b = Builder()
    weights = "w" if computed == "weights" else b.weights(3, 3, 1, 1)
    hidden = b.node("Conv", ["x", weights])
    gamma = "g" if computed == "parameters" else b.positive(3)
    b.node("BatchNormalization", [hidden, gamma, b.weights(3), b.weights(3), b.positive(3)], "y")
    stays(b.model({"x": [1, 3, 4, 4], "w": [3, 3, 1, 1], "g": [3]}, {"y": None}), "")


def test_it_stays_in_training_mode():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(3, 3, 1, 1)])
    b.batchnorm(hidden, 3, "y", training_mode=1)
    b.nodes[-1].output.extend(["mean", "variance"])
    stays(b.model({"x": [1, 3, 4, 4]}, {"y": None}), "training mode")


def test_half_precision_weights_stay_half():
    b = Builder()
    half = {name: b.constant(np.full(shape, 2, np.float16)) for name, shape in {"w": (3, 3, 1, 1), "p": (3,)}.items()}
    hidden = b.node("Conv", ["x", half["w"]])
    b.node("BatchNormalization", [hidden, half["p"], half["p"], half["p"], half["p"]], "y")
    model = b.model({"x": [1, 3, 4, 4]}, {"y": None}, kind=onnx.TensorProto.FLOAT16)
    fold_batchnorm.run(model)
    assert {tensor.data_type for tensor in model.graph.initializer} == {onnx.TensorProto.FLOAT16}
