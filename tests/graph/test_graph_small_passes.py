"""remove_dead, name_nodes and infer_shapes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, conv_model, op_types
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from anfbuild.errors import StepError
from anfbuild.graph.passes import infer_shapes, name_nodes, remove_dead


def test_what_no_output_needs_is_removed():
    b = Builder()
    used = b.node("MatMul", ["x", b.weights(4, 4)])
    b.node("Neg", [b.node("MatMul", [used, b.weights(4, 4)])])
    b.node("Relu", [used], "y")
    model = b.model({"x": [1, 4], "ignored": [1]}, {"y": [1, 4]})
    assert remove_dead.run(model).notes == ["removed 2 nodes and 1 initializers"]
    assert op_types(model) == ["MatMul", "Relu"]
    assert [value.name for value in model.graph.input] == ["x", "ignored"]


def test_what_a_branch_needs_stays():
    b = Builder()
    captured = b.node("Neg", [b.weights(3)], "captured")
    out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])]
    branch = helper.make_graph([helper.make_node("Add", ["x", captured], ["o"])], "b", [], out)
    direct = helper.make_graph([], "d", [], [helper.make_tensor_value_info("kept", TensorProto.FLOAT, [3])])
    b.node("Abs", ["x"], "kept")
    b.node("If", [b.constant(np.bool_(True))], "y", then_branch=branch, else_branch=direct)
    model = b.model({"x": [3]}, {"y": [3]})
    assert remove_dead.run(model).changed == 0


@given(st.lists(st.sampled_from(["", "a", "b", "Relu_0", "Relu_1", "Relu_2"]), max_size=8))
def test_names_are_unique_and_those_that_exist_stay(names):
    b = Builder()
    value = "x"
    for name in names:
        value = b.node("Relu", [value], name=name)
    model = b.model({"x": [1]}, {value: [1]})
    name_nodes.run(model)
    found = [node.name for node in model.graph.node]
    assert len(set(found)) == len(found)
    assert "" not in found
    for position, name in enumerate(names):
        if name and name not in names[:position]:
            assert found[position] == name
    assert name_nodes.run(model).changed == 0


def test_every_value_gets_its_shape():
    model = conv_model()
    infer_shapes.run(model)
    assert [value.name for value in model.graph.value_info] == [model.graph.node[0].output[0]]


def test_a_data_dependent_shape_is_named_with_its_node():
    b = Builder()
    found = b.node("NonZero", ["x"], name="find")
    b.node("Cast", [found], "y", to=TensorProto.FLOAT)
    with pytest.raises(StepError, match="no static shape") as caught:
        infer_shapes.run(b.model({"x": [4]}, {"y": ["r", "n"]}))
    assert caught.value.where == "node find (NonZero)"


def test_contradicting_shapes_are_named_with_their_node():
    b = Builder()
    product = b.node("MatMul", ["x", b.weights(5, 2)], name="product")
    b.node("Relu", [product], "y", name="behind")
    with pytest.raises(StepError, match="do not fit") as caught:
        infer_shapes.run(b.model({"x": [1, 4]}, {"y": [1, 2]}))
    assert caught.value.where == "node product (MatMul)"
    assert "Incompatible dimensions" in caught.value.what
    assert "behind" not in caught.value.what  # only the first cause is told
    assert isinstance(caught.value.__cause__, onnx.shape_inference.InferenceError)


@pytest.mark.parametrize(
    ("times", "says"), [(10**5, r"shape \[100000, 400000\] has more than"), (0, r"shape \[0, 0\] has no elements")]
)
def test_a_value_that_no_memory_holds_or_that_is_none_is_refused(times, says):
    b = Builder()
    b.node("Tile", ["x", b.constant(np.array([times, times]))], "y", name="grows")
    with pytest.raises(StepError, match=says) as caught:
        infer_shapes.run(b.model({"x": [1, 4]}, {"y": ["h", "w"]}))
    assert caught.value.where == "node grows (Tile)"
    assert caught.value.remedy
