"""Nodes that do nothing go; names of inputs and outputs stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from anfbuild.graph.passes import remove_dead, remove_identity


def check(model, left, **shapes):
    before = copy(model)
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


@pytest.mark.parametrize(
    ("op", "operand", "attributes"),
    [
        ("Cast", None, {"to": TensorProto.FLOAT}),
        ("Reshape", [2, -1, 3], {}),
        ("Expand", [1, 3, 1], {}),
        ("Tile", [1, 1, 1], {}),
        ("Pad", [0] * 6, {}),
        ("Transpose", None, {"perm": [0, 1, 2]}),
        ("Concat", None, {"axis": 1}),
        ("Max", None, {}),
    ],
)
def test_a_node_that_changes_nothing_here_goes(op, operand, attributes):
    b = Builder()
    inputs = [b.node("Relu", ["x"])] + ([] if operand is None else [b.constant(np.array(operand))])
    b.node("Neg", [b.node(op, inputs, **attributes)], "y")
    check(b.model({"x": [2, 3, 3]}, {"y": [2, 3, 3]}), ["Relu", "Neg"], x=[2, 3, 3])


@pytest.mark.parametrize(
    ("op", "operand", "attributes"),
    [
        ("Cast", None, {"to": TensorProto.FLOAT16}),
        ("Reshape", [3, 2, 3], {}),
        ("Expand", [2, 2, 3, 3], {}),
        ("Pad", [1, 0, 0, -1, 0, 0], {}),
        ("Transpose", None, {"perm": [0, 2, 1]}),
    ],
)
def test_one_that_changes_something_stays(op, operand, attributes):
    b = Builder()
    inputs = [b.node("Relu", ["x"])] + ([] if operand is None else [b.constant(np.array(operand))])
    b.node("Cast", [b.node(op, inputs, **attributes)], "y", to=TensorProto.FLOAT)
    model = b.model({"x": [2, 3, 3]}, {"y": None})
    before = copy(model)
    remove_identity.run(model)
    assert op_types(model)[:2] == ["Relu", op]
    assert_same_floats(before, model, x=[2, 3, 3])


@given(
    orders=st.lists(st.one_of(st.none(), st.permutations([0, 1, 2])), min_size=1, max_size=5),
    kept=st.sets(st.integers(0, 4)),
    data=st.data(),
)
@settings(deadline=None)
def test_transposes_in_a_row_become_one_or_none(orders, kept, data):
    b = Builder()
    value = "x"
    outputs = {}
    for position, order in enumerate(orders):
        value = b.node("Transpose", [value], **({} if order is None else {"perm": order}))
        if position in kept:
            outputs[value] = None
        if data.draw(st.booleans()):
            value = b.node("Identity", [value])
    b.node("Tanh", [value], "y")
    model = b.model({"x": [2, 3, 4]}, {"y": None, **outputs})
    before = copy(model)
    remove_identity.run(model)
    remove_dead.run(model)
    if not outputs and None not in orders:
        assert op_types(model).count("Transpose") <= 1
    assert_same_floats(before, model, x=[2, 3, 4])


def test_two_that_cancel_between_input_and_output_leave_a_valid_model():
    b = Builder()
    b.node("Transpose", [b.node("Transpose", ["x"])], "y")
    model = b.model({"x": [2, 3]}, {"y": [2, 3]})
    before = copy(model)
    remove_identity.run(model)
    assert_same_floats(before, model, x=[2, 3])


def test_inside_of_a_branch_they_go_too():
    b = Builder()
    out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])]
    inner = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("Neg", ["a"], ["b"]),
        helper.make_node("Dropout", ["b"], ["c"]),
        helper.make_node("Identity", ["c"], ["o"]),
    ]
    branch = helper.make_graph(inner, "b", [], out)
    b.node("If", [b.constant(np.bool_(True))], "y", then_branch=branch, else_branch=branch)
    model = b.model({"x": [3]}, {"y": [3]})
    before = copy(model)
    remove_identity.run(model)
    for attribute in model.graph.node[0].attribute:
        assert [node.op_type for node in attribute.g.node] == ["Neg"]
    assert_same_floats(before, model, x=[3])
