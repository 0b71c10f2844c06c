"""Each node of the cleaned model is traced to source nodes, and each source node that matters to a node."""

from __future__ import annotations

import numpy as np
import onnx
from graph_models import Builder, assert_traced, conv_model
from onnx import TensorProto, helper
from test_graph_pipeline import exported

from anfbuild.graph import clean


def test_an_untouched_node_is_its_own_source():
    assert clean(conv_model(), {}).provenance == {"conv": ["conv"], "relu": ["relu"]}


def test_folded_lifted_and_bypassed_nodes_are_found_again():
    cleaned = clean(exported(), {"x": [1, 3, 8, 8]}, ["y"])
    assert_traced(exported(), cleaned, ["y"])
    names = dict(zip([node.op_type for node in cleaned.model.graph.node], cleaned.provenance.values(), strict=True))
    assert names["Conv"] == ["#0 Conv", "#1 BatchNormalization"]
    assert names["ConvTranspose"] == [
        "#3 ConvTranspose",
        "#4 Constant",
        "#5 Add",
        "#6 BatchNormalization",
        "#7 Dropout",
    ]
    assert names["Reshape"] == ["#8 Shape", "#9 Gather", "#10 Concat", "#11 Reshape", "#12 Identity"]


def test_names_that_several_nodes_have_are_told_apart():
    b = Builder()
    b.node("Neg", [b.node("Relu", ["x"], name="same")], "y", name="same")
    found = clean(b.model({"x": [3]}, {"y": [3]}), {}).provenance
    assert sorted(found.values()) == [["#0 Relu"], ["#1 Neg"]]


def test_identities_behind_an_input_count_for_what_reads_it():
    b = Builder()
    b.node("Relu", [b.node("Identity", [b.node("Identity", ["x"], name="a")], name="b")], "y", name="c")
    assert clean(b.model({"x": [3]}, {"y": [3]}), {}).provenance == {"c": ["a", "b", "c"]}


def test_inlined_functions_and_conversions_are_traced_to_the_call():
    b = Builder()
    hidden = b.node("Twice", ["x"], domain="local", name="call")
    b.node("Softmax", [hidden], "y", name="soft")
    model = b.model({"x": [1, 2, 3]}, {"y": [1, 2, 3]}, opset=11)
    model.opset_import.add(domain="local", version=1)
    body = [helper.make_node("Add", ["a", "a"], ["c"]), helper.make_node("Neg", ["c"], ["b"])]
    model.functions.append(helper.make_function("local", "Twice", ["a"], ["b"], body, model.opset_import[:1]))
    cleaned = clean(model, {})
    assert_traced(model, cleaned)
    found = dict(zip([node.op_type for node in cleaned.model.graph.node], cleaned.provenance.values(), strict=True))
    assert found["Add"] == found["Neg"] == ["call"]
    assert found["Softmax"] == ["soft"]


def test_a_node_that_holds_a_subgraph_stands_for_what_it_reads_inside():
    b = Builder()
    captured = b.node("Constant", [], "captured", value=onnx.numpy_helper.from_array(np.ones(3, np.float32)))
    out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [3])]
    branch = helper.make_graph([helper.make_node("Add", ["x", captured], ["o"])], "b", [], out)
    positive = b.node("Greater", [b.node("ReduceMax", ["x"], keepdims=0), b.constant(np.float32(0))])
    b.node("If", [positive], "y", then_branch=branch, else_branch=branch, name="choice")
    cleaned = clean(b.model({"x": [3]}, {"y": [3]}), {})
    assert cleaned.provenance["choice"] == ["#0 Constant", "choice"]


def test_no_mark_is_left_in_the_model():
    cleaned = clean(exported(), {"x": [1, 3, 8, 8]}).model
    assert b"anfbuild.source" not in cleaned.SerializeToString()
