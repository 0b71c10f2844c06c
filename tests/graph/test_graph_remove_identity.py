"""Nodes that do nothing go; names of inputs and outputs stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, op_types
from onnx import TensorProto, helper

from anfbuild.graph.passes import remove_identity


def check(model, left, **shapes):
    before = onnx.ModelProto.FromString(model.SerializeToString())
    remove_identity.run(model)
    assert op_types(model) == left
    onnx.checker.check_model(model)
    assert_same_floats(before, model, **shapes)


@pytest.mark.parametrize("op", ["Identity", "Dropout"])
def test_one_in_the_middle_goes(op):
    b = Builder()
    hidden = b.node(op, [b.node(op, ["x"])])
    b.node("Add", [b.node("Relu", [hidden]), hidden], "y")
    check(b.model({"x": [4]}, {"y": [4]}), ["Relu", "Add"], x=[4])


def test_one_before_an_output_hands_on_its_name():
    b = Builder()
    hidden = b.node("Relu", ["x"])
    b.node("Identity", [hidden], "y")
    b.node("Neg", [hidden], "z")
    check(b.model({"x": [4]}, {"y": [4], "z": [4]}), ["Relu", "Neg"], x=[4])


def test_two_outputs_of_one_value_keep_one_node():
    b = Builder()
    hidden = b.node("Relu", ["x"])
    b.node("Identity", [hidden], "y")
    b.node("Identity", [hidden], "z")
    check(b.model({"x": [4]}, {"y": [4], "z": [4]}), ["Relu", "Identity"], x=[4])


def test_one_from_input_or_constant_to_output_stays():
    b = Builder()
    b.node("Identity", ["x"], "y")
    b.node("Identity", [b.weights(3)], "z")
    check(b.model({"x": [4]}, {"y": [4], "z": [3]}), ["Identity", "Identity"], x=[4])


def test_a_dropout_that_drops_or_whose_mask_is_read_stays():
    b = Builder()
    training = b.node("Dropout", ["x", b.constant(np.float32(0.5)), b.constant(np.bool_(True))])
    inference = b.node("Dropout", [training, b.constant(np.float32(0.5)), b.constant(np.bool_(False))])
    b.nodes.append(helper.make_node("Dropout", [inference], ["y", "mask"]))
    b.node("Cast", ["mask"], "z", to=TensorProto.FLOAT)
    model = b.model({"x": [4]}, {"y": [4], "z": [4]})
    remove_identity.run(model)
    assert op_types(model) == ["Dropout", "Dropout", "Cast"]


def test_branches_read_the_value_behind_it():
    b = Builder()
    hidden = b.node("Identity", [b.node("Relu", ["x"])], "hidden")
    out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])]
    branch = helper.make_graph([helper.make_node("Neg", [hidden], ["o"])], "b", [], out)
    b.node("If", [b.constant(np.bool_(True))], "y", then_branch=branch, else_branch=branch)
    check(b.model({"x": [3]}, {"y": [3]}), ["Relu", "If"], x=[3])
