"""BatchNormalization goes: into its neighbour where it may, else it is written as a multiplication and an addition."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.errors import StepError
from anfbuild.graph import clean
from anfbuild.graph.passes import fold_affine, lower_batchnorm


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
    assert fold_affine.run(model).notes == ["folded 1 nodes"]
    assert op_types(model) == ["ConvTranspose" if transposed else "Conv"]
    assert_same_floats(before, model, x=[2, channels_in, *[5] * spatial])


@given(shape=st.sampled_from([(3, 4), (2, 4, 5), (1, 4, 3, 3), (1, 4, 2, 2, 2)]), seed=st.integers(0, 9))
def test_one_without_neighbours_becomes_two_nodes(shape, seed):
    b = Builder(seed)
    b.batchnorm(b.node("Relu", ["x"]), 4, "y")
    model = b.model({"x": shape}, {"y": None})
    before = copy(model)
    assert fold_affine.run(model).changed == 0
    assert lower_batchnorm.run(model).notes == ["wrote 1 as Mul and Add"]
    assert op_types(model) == ["Relu", "Mul", "Add"]
    assert_same_floats(before, model, x=shape)


def test_shared_weights_are_not_changed_for_others():
    b = Builder()
    weights = b.weights(3, 3, 1, 1)
    hidden = b.batchnorm(b.node("Conv", ["x", weights]), 3)
    b.batchnorm(b.node("Conv", [hidden, weights]), 3, "y")
    model = b.model({"x": [1, 3, 4, 4]}, {"y": None})
    before = copy(model)
    assert fold_affine.run(model).changed == 2
    assert_same_floats(before, model, x=[1, 3, 4, 4])


@pytest.mark.parametrize("is_output", [True, False])
def test_a_convolution_that_others_read_stays_as_it_is(is_output):
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(3, 3, 1, 1)], "hidden")
    b.node("Add", [b.batchnorm(hidden, 3), "x" if is_output else hidden], "y")
    model = b.model({"x": [1, 3, 4, 4]}, {"y": None, **({"hidden": None} if is_output else {})})
    before = copy(model)
    assert fold_affine.run(model).changed == 0
    lower_batchnorm.run(model)
    assert op_types(model) == ["Conv", "Mul", "Add", "Add"]
    assert_same_floats(before, model, x=[1, 3, 4, 4])


def stays(model, reason):
    before = copy(model)
    result = lower_batchnorm.run(model)
    assert fold_affine.run(model).changed == result.changed == 0
    assert reason in result.notes[0]
    assert model == before


def test_it_stays_where_its_parameters_are_computed():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(3, 3, 1, 1)])
    b.node("BatchNormalization", [hidden, "g", b.weights(3), b.weights(3), b.positive(3)], "y")
    stays(b.model({"x": [1, 3, 4, 4], "g": [3]}, {"y": None}), "computed")


def test_it_stays_in_training_mode():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(3, 3, 1, 1)])
    b.batchnorm(hidden, 3, "y", training_mode=1)
    b.nodes[-1].output.extend(["mean", "variance"])
    stays(b.model({"x": [1, 3, 4, 4]}, {"y": None}), "training mode")


def test_it_stays_where_the_variance_is_no_variance():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(3, 3, 1, 1)])
    broken = b.constant(np.array([1, -1, 1], np.float32))
    b.node("BatchNormalization", [hidden, b.positive(3), b.weights(3), b.weights(3), broken], "y")
    stays(b.model({"x": [1, 3, 4, 4]}, {"y": None}), "not above zero")


def test_half_precision_weights_stay_half():
    b = Builder()
    half = {name: b.constant(np.full(shape, 2, np.float16)) for name, shape in {"w": (3, 3, 1, 1), "p": (3,)}.items()}
    hidden = b.node("Conv", ["x", half["w"]])
    hidden = b.node("BatchNormalization", [hidden, half["p"], half["p"], half["p"], half["p"]])
    b.node("BatchNormalization", [b.node("Relu", [hidden]), *[half["p"]] * 4], "y")
    model = b.model({"x": [1, 3, 4, 4]}, {"y": None}, kind=onnx.TensorProto.FLOAT16)
    fold_affine.run(model)
    lower_batchnorm.run(model)
    assert op_types(model) == ["Conv", "Relu", "Mul", "Add"]
    assert {tensor.data_type for tensor in model.graph.initializer} == {onnx.TensorProto.FLOAT16}


def strictly(build, shape=(1, 4, 3, 3)):
    """What cleaning says of x -> build -> y in strict mode."""
    b = Builder()
    build(b)
    with pytest.raises(StepError) as caught:
        clean(b.model({"x": shape}, {"y": None}), {}, strict=True)
    assert "model.strict=false" in caught.value.remedy
    assert caught.value.where == "node norm (BatchNormalization)"
    return str(caught.value)


def test_strict_mode_names_the_node_and_the_reason():
    said = strictly(lambda b: b.batchnorm(b.node("Relu", ["x"], name="relu"), 4, "y", name="norm"))
    assert "node relu (Relu) stands before it and a model output behind it" in said


def test_strict_mode_tells_of_another_reader():
    def build(b):
        hidden = b.node("Conv", ["x", b.weights(4, 4, 1, 1)], name="conv")
        b.node("Add", [hidden, b.batchnorm(hidden, 4, name="norm")], "y")

    assert "something else reads what node conv (Conv) makes" in strictly(build)


def test_strict_mode_tells_of_computed_parameters():
    def build(b):
        scale = b.node("ReduceMax", ["x"], axes=[0, 2, 3], keepdims=0)
        b.node("BatchNormalization", ["x", scale, *[b.positive(4) for _ in range(3)]], "y", name="norm")

    assert "its parameters are computed" in strictly(build)


def test_strict_mode_tells_of_a_shift_before_padding():
    def build(b):
        hidden = b.batchnorm(b.node("Relu", ["x"], name="relu"), 4, name="norm")
        b.node("Conv", [hidden, b.weights(4, 4, 3, 3)], "y", pads=[1] * 4, name="conv")

    assert "node conv (Conv) behind it cannot take up the shift" in strictly(build)


def test_strict_mode_accepts_what_folds():
    b = Builder()
    b.batchnorm(b.node("Conv", ["x", b.weights(4, 4, 1, 1)]), 4, "y")
    cleaned = clean(b.model({"x": [1, 4, 3, 3]}, {"y": None}), {}, strict=True)
    assert op_types(cleaned.model) == ["Conv"]
