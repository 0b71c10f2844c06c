"""Loops that nothing ends, and weights that are no numbers, are refused by name."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, conv_model
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph import clean
from anfbuild.graph.passes import refuse_unsound


def loop(turns: str) -> onnx.NodeProto:
    """A Loop named `spin` that doubles x at every turn."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]), helper.make_node("Add", ["v", "v"], ["doubled"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("go_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("doubled", TensorProto.FLOAT, [2]),
        ],
    )
    return helper.make_node("Loop", [turns, "go_first", "x"], ["y"], name="spin", body=body)


def looping(turns: int | None) -> onnx.ModelProto:
    b = Builder()
    b.constant(np.bool_(True), "go_first")
    b.nodes.append(loop("" if turns is None else b.constant(np.int64(turns))))
    return b.model({"x": [2]}, {"y": [2]})


def branching(constant: bool) -> onnx.ModelProto:
    """The loop in a branch, its turns a Constant there or a value that depends on x."""
    b = Builder()
    b.constant(np.bool_(True), "go_first")
    b.node("Cast", [b.node("ReduceMax", ["x"], keepdims=0)], "computed", to=TensorProto.INT64)
    fixed = helper.make_node("Constant", [], ["fixed"], value_int=3)
    branch = helper.make_graph(
        [fixed, loop("fixed" if constant else "computed")],
        "branch",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["o"])],
        "other",
        [],
        [helper.make_tensor_value_info("o", TensorProto.FLOAT, [2])],
    )
    condition = b.node("Cast", ["computed"], to=TensorProto.BOOL)
    b.node("If", [condition], "z", then_branch=branch, else_branch=other)
    return b.model({"x": [2]}, {"z": [2]})


@pytest.mark.parametrize("model", [looping(3), looping(refuse_unsound.MOST_TURNS), branching(True)])
def test_a_loop_of_fixed_turns_is_kept(model):
    before = model.SerializeToString()
    assert refuse_unsound.run(model).changed == 0
    assert model.SerializeToString() == before


@pytest.mark.parametrize("model", [looping(None), looping(2**63 - 1), branching(False)])
def test_a_loop_that_could_run_for_ever_is_refused(model):
    with pytest.raises(StepError, match="for ever") as caught:
        clean(model, {})
    assert caught.value.where == "node spin (Loop)"
    assert "fixed number of turns" in caught.value.remedy


def test_turns_that_follow_from_the_shape_of_an_input_are_fixed():
    b = Builder()
    b.constant(np.bool_(True), "go_first")
    turns = b.node("Squeeze", [b.node("Shape", ["x"])])
    b.nodes.append(loop(turns))
    clean(b.model({"x": [2]}, {"y": [2]}), {})


def test_what_is_cut_off_is_not_judged():
    model = looping(None)
    model.graph.node.append(helper.make_node("Relu", ["x"], ["before"]))
    cleaned, _, _ = clean(model, {}, ["before"])
    assert [node.op_type for node in cleaned.graph.node] == ["Relu"]


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.float64])
def test_weights_that_hold_nan_are_refused(kind):
    model = conv_model()
    weights = numpy_helper.to_array(model.graph.initializer[0]).astype(kind)
    weights[1, 2, 0, 0] = np.nan
    name = model.graph.initializer[0].name
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(weights, name))
    with pytest.raises(StepError, match=f"weights hold NaN.*{name!r}") as caught:
        refuse_unsound.run(model)
    assert "again" in caught.value.remedy


@pytest.mark.parametrize(
    "attributes",
    [
        {"value": numpy_helper.from_array(np.array([np.nan, 1], np.float32))},
        {"value_float": float("nan")},
        {"value_floats": [1.0, float("nan")]},
    ],
)
def test_constants_of_branches_that_hold_nan_are_refused(attributes):
    model = branching(True)
    node = next(node for node in model.graph.node if node.op_type == "If")
    node.attribute[0].g.node.append(helper.make_node("Constant", [], ["bad"], **attributes))
    with pytest.raises(StepError, match="'bad'"):
        refuse_unsound.run(model)


def test_infinite_weights_are_masks():
    b = Builder()
    b.node("Add", ["x", b.constant(np.array([-np.inf, 0], np.float32))], "y")
    clean(b.model({"x": [2]}, {"y": [2]}), {})
