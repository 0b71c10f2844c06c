"""What is hard to clean comes out right, or is refused with the node and a remedy; nothing crashes or hangs."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, assert_traced, op_types
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import AnfbuildError, StepError
from anfbuild.graph import clean, load, save


def refused(model, says):
    with pytest.raises(AnfbuildError, match=says) as caught:
        clean(model, {})
    assert caught.value.remedy
    return caught.value


def chain(length, kinds):
    b = Builder()
    value = "x"
    makers = {
        "add": lambda: b.node("Add", [value, b.weights(1)]),
        "constant": lambda: b.node(
            "Add", [value, b.node("Constant", [], value=numpy_helper.from_array(np.ones(1, np.float32)))]
        ),
        "norm": lambda: b.batchnorm(value, 2),
        "conv": lambda: b.node("Conv", [value, b.weights(2, 2, 1, 1)]),
        "transpose": lambda: b.node("Transpose", [value], perm=[0, 1, 3, 2]),
        "reshape": lambda: b.node("Reshape", [value, b.node("Shape", [value])]),
    }
    for kind in itertools.islice(itertools.cycle(kinds), length):
        value = makers[kind]() if kind in makers else b.node(kind, [value])
    b.node("Tanh", [value], "y")
    return b.model({"x": [1, 2, 3, 3]}, {"y": [1, 2, 3, 3]})


@given(
    kinds=st.lists(
        st.sampled_from(["Identity", "Sigmoid", "Relu", "norm", "constant", "transpose", "reshape", "add"]),
        min_size=1,
        max_size=4,
    )
)
@settings(deadline=None, max_examples=15)
def test_chains_come_out_equal_and_traced(kinds):
    model = chain(60, kinds)
    cleaned = clean(model, {})
    if "reshape" not in kinds:  # what only its shape was asked for does not matter to the result
        assert_traced(model, cleaned)
    assert_same_floats(model, cleaned.model, x=[1, 2, 3, 3])


@pytest.mark.full
@pytest.mark.parametrize("kinds", [["Relu", "Identity"], ["Identity"], ["add"], ["conv", "add"], ["norm"], ["reshape"]])
def test_a_hundred_thousand_nodes(kinds):
    cleaned = clean(chain(100_000, kinds), {})
    assert cleaned.model.graph.node[-1].op_type == "Tanh"


def cycle():
    b = Builder()
    b.node("Add", ["x", "back"], "there")
    b.node("Relu", ["there"], "back")
    b.node("Neg", ["back"], "y")
    return b.model({"x": [2]}, {"y": [2]})


def two_makers(what):
    b = Builder()
    b.node("Relu", ["x"], "y")
    if what == "output":
        b.node("Neg", ["x"], "y")
    elif what == "initializer":
        b.constant(np.ones(2, np.float32), "y")
    else:
        b.node("Neg", ["x"], "x")
    return b.model({"x": [2]}, {"y": [2]})


@pytest.mark.parametrize("model", [cycle(), *map(two_makers, ["output", "initializer", "input"])])
def test_cycles_and_two_makers_of_one_value_are_refused(model, tmp_path):
    with pytest.raises(StepError, match="not a valid ONNX model") as caught:
        clean(model, {})
    assert caught.value.remedy
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(StepError, match="not a valid ONNX model") as caught:
        load(tmp_path / "model.onnx")
    assert caught.value.remedy


@pytest.mark.parametrize("op", ["Relu", "Softmax", "Conv", "MatMul", "ReduceSum", "Concat"])
def test_values_without_elements_are_refused(op):
    b = Builder()
    cut = b.node("Slice", ["x", b.constant(np.array([0])), b.constant(np.array([0])), b.constant(np.array([0]))])
    if op == "Conv":
        b.node(op, [cut, b.weights(2, 2, 1, 1)], "y")
    elif op == "MatMul":
        b.node(op, [cut, b.weights(3, 3)], "y")
    elif op == "Concat":
        b.node(op, [cut, "x"], "y", axis=0)
    else:
        b.node(op, [cut], "y")
    error = refused(b.model({"x": [1, 2, 3, 3]}, {"y": None}), "no elements")
    assert "(Slice)" in error.where


def body(nodes, inputs, outputs):
    def typed(name):
        kind, shape = {"i": (TensorProto.INT64, []), "go": (TensorProto.BOOL, []), "going": (TensorProto.BOOL, [])}.get(
            name, (TensorProto.FLOAT, [3])
        )
        return helper.make_tensor_value_info(name, kind, shape)

    return helper.make_graph(nodes, "body", [typed(name) for name in inputs], [typed(name) for name in outputs])


def test_a_loop_stays_and_computes_the_same():
    b = Builder()
    b.node("Identity", [b.node("Relu", ["x"])], "start")
    inner = [
        helper.make_node("Identity", ["go"], ["going"]),
        helper.make_node("Identity", ["state"], ["same"]),
        helper.make_node("Add", ["same", "start"], ["next"]),
    ]
    loop = body(inner, ["i", "go", "state"], ["going", "next"])
    b.node("Loop", [b.constant(np.int64(4)), "", "start"], "y", body=loop, name="loop")
    model = b.model({"x": [3]}, {"y": [3]})
    cleaned = clean(model, {})
    assert op_types(cleaned.model) == ["Relu", "Loop"]
    assert [node.op_type for node in cleaned.model.graph.node[1].attribute[0].g.node] == ["Identity", "Add"]
    assert_traced(model, cleaned)
    assert_same_floats(model, cleaned.model, x=[3])


def test_a_scan_stays_and_computes_the_same():
    b = Builder()
    scanned = body(
        [helper.make_node("Add", ["state", "row"], ["next"]), helper.make_node("Identity", ["next"], ["out"])],
        ["state", "row"],
        ["next", "out"],
    )
    b.nodes.append(helper.make_node("Scan", ["s", "x"], ["z", "y"], body=scanned, num_scan_inputs=1))
    model = b.model({"s": [3], "x": [5, 3]}, {"y": [5, 3], "z": [3]})
    cleaned = clean(model, {})
    assert_same_floats(model, cleaned.model, s=[3], x=[5, 3])


def test_nested_branches_see_what_is_around_them():
    b = Builder()
    shared = b.node("Identity", [b.node("BatchNormalization", ["x", *[b.positive(3) for _ in range(4)]])], "shared")
    out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [2, 3])]
    deepest = helper.make_graph(
        [helper.make_node("Neg", [shared], ["o2"])],
        "deepest",
        [],
        [helper.make_tensor_value_info("o2", TensorProto.FLOAT, [2, 3])],
    )
    always = b.constant(np.bool_(True))
    inner = helper.make_graph(
        [helper.make_node("If", [always], ["o"], then_branch=deepest, else_branch=deepest)], "inner", [], out
    )
    b.node(
        "If",
        [b.node("Greater", [b.node("ReduceMax", ["x"], keepdims=0), b.constant(np.float32(0))])],
        "y",
        then_branch=inner,
        else_branch=inner,
    )
    model = b.model({"x": [2, 3]}, {"y": [2, 3]})
    assert_same_floats(model, clean(model, {}).model, x=[2, 3])


def test_an_operator_of_an_unknown_domain_is_named():
    b = Builder()
    b.node("Relu", [b.node("Mystery", ["x"], domain="com.example", name="odd")], "y")
    model = b.model({"x": [2]}, {"y": [2]})
    model.opset_import.add(domain="com.example", version=1)
    assert refused(model, "no static shape").where == "node odd (Mystery)"


def test_a_known_operator_of_another_domain_stays():
    b = Builder()
    b.node("Relu", [b.node("FusedMatMul", ["x", b.weights(3, 3)], "h", domain="com.microsoft")], "y")
    model = b.model({"x": [2, 3]}, {"y": [2, 3]})
    model.opset_import.add(domain="com.microsoft", version=1)
    model.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [2, 3]))
    cleaned = clean(model, {}).model
    assert_same_floats(model, cleaned, x=[2, 3])


def test_strings_inside_are_refused():
    b = Builder()
    words = b.node("Constant", [], value=helper.make_tensor("w", TensorProto.STRING, [1], [b"a"]), name="words")
    b.node("Cast", [b.node("StringNormalizer", [words])], "y", to=TensorProto.FLOAT)
    assert refused(b.model({"x": [1]}, {"y": None}), "string").where == "node words (Constant)"


@pytest.mark.parametrize("opset", [22, 24])
def test_a_newer_opset_is_refused(opset):
    b = Builder()
    b.node("Relu", ["x"], "y")
    refused(b.model({"x": [1]}, {"y": [1]}, opset=opset, ir=10), f"opset {opset}")


def test_opset_7_with_initializers_among_the_inputs_is_converted():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(4, 3, 3, 3)])
    hidden = b.node("BatchNormalization", [hidden, b.positive(4), b.weights(4), b.weights(4), b.positive(4)])
    hidden = b.node("Dropout", [b.node("Clip", [hidden], min=0.0, max=6.0)], ratio=0.3)
    hidden = b.node("Upsample", [hidden], scales=[1.0, 1.0, 2.0, 2.0], mode="nearest")
    b.node("Softmax", [b.node("Flatten", [hidden])], "y")
    inputs = {"x": [1, 3, 6, 6], **{tensor.name: list(tensor.dims) for tensor in b.initializers}}
    model = b.model(inputs, {"y": None}, opset=7, ir=3)
    cleaned = clean(model, {})
    assert op_types(cleaned.model)[:3] == ["Conv", "Clip", "Resize"]
    assert_traced(model, cleaned)
    assert_same_floats(model, cleaned.model, x=[1, 3, 6, 6])


@given(names=st.lists(st.text(min_size=1, max_size=6), min_size=6, max_size=6, unique=True))
@settings(deadline=None, max_examples=30)
def test_names_may_hold_any_characters(names, tmp_path_factory):
    image, output, hidden, weights, first, last = names
    b = Builder()
    b.node(
        "Conv",
        [image, b.constant(b.random.standard_normal((2, 2, 1, 1)).astype(np.float32), weights)],
        hidden,
        name=first,
    )
    b.batchnorm(hidden, 2, output, name=last)
    try:
        model = b.model({image: [1, 2, 3, 3]}, {output: [1, 2, 3, 3]})
        encoded = model.SerializeToString()
    except (UnicodeEncodeError, ValueError):  # lone surrogates are no text
        return
    path = tmp_path_factory.mktemp("names") / "model.onnx"
    cleaned = clean(onnx.ModelProto.FromString(encoded), {})
    save(cleaned.model, path)
    assert load(path) == cleaned.model
    assert list(cleaned.provenance.values()) == [[first, last]]
    assert [node.op_type for node in cleaned.model.graph.node] == ["Conv"]


@pytest.mark.parametrize("place", ["initializer", "constant", "inner"])
def test_weights_that_are_no_numbers_are_refused(place):
    b = Builder()
    nan = np.array([1, np.nan], np.float32)
    if place == "initializer":
        b.node("Add", ["x", b.constant(nan)], "y")
    elif place == "constant":
        b.node("Add", ["x", b.node("Constant", [], value=numpy_helper.from_array(nan))], "y")
    else:
        out = [helper.make_tensor_value_info("o", TensorProto.FLOAT, [2])]
        value = helper.make_node("Constant", [], ["v"], value=numpy_helper.from_array(nan))
        branch = helper.make_graph([value, helper.make_node("Add", ["x", "v"], ["o"])], "b", [], out)
        b.node("If", [b.constant(np.bool_(True))], "y", then_branch=branch, else_branch=branch)
    refused(b.model({"x": [2]}, {"y": [2]}), "NaN")


def test_nodes_of_one_name_get_names_of_their_own():
    b = Builder()
    folded = b.node("Neg", [b.node("Exp", [b.weights(2)], name="same")], name="same")
    b.node("Add", [b.node("Sigmoid", ["x"], name="same"), folded], "y", name="same")
    model = b.model({"x": [2]}, {"y": [2]})
    cleaned = clean(model, {})
    names = [node.name for node in cleaned.model.graph.node]
    assert names[0] == "same"
    assert len(set(names)) == 2
    assert list(cleaned.provenance.values()) == [["#2 Sigmoid"], ["#0 Exp", "#1 Neg", "#3 Add"]]
    for node in model.graph.node:
        node.name = ""
    assert_same_floats(model, cleaned.model, x=[2])
