"""What does not depend on the inputs is computed once, bit for bit as the session would."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, op_types
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph import Session
from anfbuild.graph.passes import fold_constants


def values(model):
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value": numpy_helper.from_array(np.arange(4, dtype=np.float32))}, np.arange(4, dtype=np.float32)),
        ({"value_float": 2.5}, np.float32(2.5)),
        ({"value_floats": [1.0, 2.0, 3.0, 4.0]}, np.array([1, 2, 3, 4], np.float32)),
        ({"value_int": 3}, np.int64(3)),
        ({"value_ints": [1, 2, 3, 4]}, np.array([1, 2, 3, 4], np.int64)),
    ],
)
def test_constant_nodes_become_initializers(attributes, expected):
    b = Builder()
    constant = b.node("Constant", [], "k", **attributes)
    b.node("Add", ["x", b.node("Cast", [constant], to=TensorProto.FLOAT)], "y")
    model = b.model({"x": [4]}, {"y": [4]})
    before = onnx.ModelProto.FromString(model.SerializeToString())
    assert fold_constants.run(model).notes == ["lifted 1 Constant nodes", "folded 1 nodes"]
    assert op_types(model) == ["Add"]
    assert values(model)["k"].dtype == expected.dtype
    assert (values(model)["k"] == expected).all()
    assert_same_floats(before, model, x=[4])


def test_string_constants_are_refused():
    b = Builder()
    b.node("Constant", [], "k", value_string="word")
    with pytest.raises(StepError, match="'k' is a string or sparse tensor"):
        fold_constants.run(b.model({"x": [4]}, {"x": [4]}))


def test_shapes_of_static_values_are_folded_through_reshape():
    b = Builder()
    rows = b.node("Shape", ["x"], start=0, end=1)
    shape = b.node("Concat", [rows, b.constant(np.array([-1]))], axis=0)
    flat = b.node("Reshape", ["x", shape])
    size = b.node("Cast", [b.node("Size", [flat])], to=TensorProto.FLOAT)
    last = b.node("Cast", [b.node("Shape", [flat], start=-1)], to=TensorProto.FLOAT)
    b.node("Add", [b.node("Mul", [flat, size]), last], "y")
    model = b.model({"x": [2, 3, 4]}, {"y": None})
    before = onnx.ModelProto.FromString(model.SerializeToString())
    fold_constants.run(model)
    assert op_types(model) == ["Reshape", "Mul", "Add"]
    assert values(model)[shape].tolist() == [2, -1]
    assert_same_floats(before, model, x=[2, 3, 4])


def test_shapes_of_open_values_stay():
    b = Builder()
    b.node("Cast", [b.node("Shape", ["x"])], "y", to=TensorProto.FLOAT)
    model = b.model({"x": ["n", 3]}, {"y": None})
    assert fold_constants.run(model).changed == 0


def test_random_and_quantization_operators_and_outputs_stay():
    b = Builder()
    one = b.constant(np.ones(3, np.float32))
    noise = b.node("RandomNormalLike", [one])
    q = b.node("QuantizeLinear", [one, b.constant(np.float32(0.1)), b.constant(np.uint8(0))])
    d = b.node("DequantizeLinear", [q, b.constant(np.float32(0.1)), b.constant(np.uint8(0))])
    b.node("Sum", ["x", noise, d], "y")
    b.node("Neg", [one], "z")
    model = b.model({"x": [3]}, {"y": [3], "z": [3]})
    assert fold_constants.run(model).changed == 0
    assert op_types(model) == ["RandomNormalLike", "QuantizeLinear", "DequantizeLinear", "Sum", "Neg"]


@pytest.mark.parametrize("computed", [False, True])
def test_a_small_model_that_unfolds_to_gigabytes_stays_small(computed):
    b = Builder()
    shape = b.constant(np.array([20000, 40000]))
    if computed:
        shape = b.node("Compress", [b.node("Abs", [shape]), b.constant(np.array([True, True]))])
    large = b.node("ConstantOfShape", [shape], "large")
    b.node("Add", ["x", b.node("ReduceMean", [b.node("Neg", [large])], keepdims=0)], "y")
    model = b.model({"x": [1]}, {"y": [1]})
    fold_constants.run(model)
    assert op_types(model) == ["ConstantOfShape", "Neg", "ReduceMean", "Add"]
    assert model.ByteSize() < 1000


def test_a_large_weight_may_take_the_place_of_another(monkeypatch):
    monkeypatch.setattr(fold_constants, "LARGEST_RESULT", 100)
    b = Builder()
    turned = b.node("Transpose", [b.weights(8, 16)])
    tiled = b.node("Tile", [b.weights(2, 5), b.constant(np.array([4, 4]))])
    b.node("MatMul", [b.node("MatMul", ["x", turned]), b.node("Transpose", [tiled])], "y")
    model = b.model({"x": [8, 16]}, {"y": None})
    fold_constants.run(model)
    assert op_types(model) == ["Tile", "MatMul", "Transpose", "MatMul"]


def test_what_only_its_values_give_a_size_is_folded():
    b = Builder()
    found = b.node("NonZero", [b.node("Relu", [b.constant(np.array([0, 2, 3], np.float32))])])
    b.node("Add", ["x", b.node("Cast", [found], to=TensorProto.FLOAT)], "y")
    model = b.model({"x": [1, 2]}, {"y": [1, 2]})
    fold_constants.run(model)
    assert op_types(model) == ["Add"]


def test_sequences_are_no_initializers():
    b = Builder()
    parts = b.node("SequenceConstruct", [b.constant(np.ones(3, np.float32)), b.constant(np.zeros(3, np.float32))])
    b.node("Add", ["x", b.node("ConcatFromSequence", [parts], axis=0)], "y")
    model = b.model({"x": [6]}, {"y": [6]})
    assert fold_constants.run(model).changed == 0


def test_branches_stay_as_they_are():
    b = Builder()
    shared = b.node("Neg", [b.constant(np.ones(3, np.float32))], "shared")
    out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])]
    branch = helper.make_graph([helper.make_node("Add", ["x", shared], ["o"])], "b", [], out)
    b.node("If", [b.constant(np.bool_(True))], "y", then_branch=branch, else_branch=branch)
    model = b.model({"x": [3]}, {"y": [3]})
    before = onnx.ModelProto.FromString(model.SerializeToString())
    fold_constants.run(model)
    assert op_types(model) == ["If"]
    assert_same_floats(before, model, x=[3])


@given(st.data())
def test_folded_values_are_those_of_the_session_bit_for_bit(data):
    b = Builder(data.draw(st.integers(0, 99)))
    known = [b.weights(3, 3), b.positive(3, 3)]
    for _ in range(data.draw(st.integers(1, 6))):
        op = data.draw(st.sampled_from(["Add", "Mul", "MatMul", "Sigmoid", "Transpose"]))
        arguments = 2 if op in ("Add", "Mul", "MatMul") else 1
        known.append(b.node(op, [data.draw(st.sampled_from(known)) for _ in range(arguments)]))
    b.node("Add", ["x", known[-1]], "y")
    model = b.model({"x": [3, 3]}, {"y": [3, 3]})
    expected = Session(model, threads=1).run({"x": np.zeros((3, 3), np.float32)})["y"]
    fold_constants.run(model)
    assert op_types(model) == ["Add"]
    assert (Session(model, threads=1).run({"x": np.zeros((3, 3), np.float32)})["y"] == expected).all()


def test_levels_of_computed_shapes_are_walked_once(monkeypatch):
    b = Builder()
    value = "x"
    for _ in range(40):  # what onnx's inference does not see through
        size = b.node("Cast", [b.node("Shape", [value])], to=onnx.TensorProto.FLOAT)
        size = b.node("Floor", [b.node("Mul", [size, b.constant(np.ones(1, np.float32))])])
        size = b.node("Cast", [size], to=onnx.TensorProto.INT64)
        value = b.node("Reshape", [b.node("Relu", [value]), size])
    b.node("Neg", [value], "y")
    model = b.model({"x": [1, 2, 3]}, {"y": None})
    before = onnx.ModelProto.FromString(model.SerializeToString())
    looks = []
    infer = fold_constants.infer
    monkeypatch.setattr(fold_constants, "infer", lambda model: looks.append(model) or infer(model))
    fold_constants.run(model)
    assert op_types(model) == ["Relu", "Reshape"] * 40 + ["Neg"]
    assert len(looks) < 20
    assert_same_floats(before, model, x=[1, 2, 3])


@pytest.mark.parametrize(("dividend", "divisor"), [(1, 0), (-(2**63), -1)])
def test_a_division_without_result_is_refused(dividend, divisor):
    b = Builder()
    computed = b.node("Add", [b.constant(np.int64(divisor - 1)), b.constant(np.int64(1))])
    whole = b.node("Div", [b.constant(np.int64(dividend)), computed], name="divides")
    b.node("Add", ["x", b.node("Cast", [whole], to=TensorProto.FLOAT)], "y")
    with pytest.raises(StepError, match="no result") as caught:
        fold_constants.run(b.model({"x": [2]}, {"y": [2]}))
    assert caught.value.where == "node divides (Div)"
    assert caught.value.remedy
