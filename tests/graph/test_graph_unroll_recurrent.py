"""LSTM and GRU, in all their forms, become ordinary nodes that compute the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, assert_traced, copy, op_types
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper

from anfbuild.errors import StepError
from anfbuild.graph import Session, clean
from anfbuild.graph.passes import unroll_recurrent

GATES = {"LSTM": 4, "GRU": 3}
SIZES = {"steps": 4, "batch": 2, "inputs": 3, "hidden": 5}


def recurrent(
    kind="LSTM",
    direction="forward",
    *,
    layout=0,
    bias=True,
    states="fed",
    lengths=False,
    outputs=("y", "h"),
    steps=4,
    batch=2,
    seed=0,
    **attributes,
):
    """x -> LSTM or GRU -> `outputs`, whose initial states are "fed", "constant" or "zero"."""
    b = Builder(seed)
    hidden, directions = SIZES["hidden"], 2 if direction == "bidirectional" else 1
    rows = GATES[kind] * hidden
    inputs = ["x", b.weights(directions, rows, 3), b.weights(directions, rows, hidden)]
    inputs.append(b.weights(directions, 2 * rows) if bias else "")
    inputs.append(b.constant(np.full(batch, steps, np.int32)) if lengths else "")
    feeds = {"x": [batch, steps, 3] if layout else [steps, batch, 3]}
    state = [batch, directions, hidden] if layout else [directions, batch, hidden]
    for name in ["h0", "c0"][: 2 if kind == "LSTM" else 1]:
        if states == "fed":
            feeds[name] = state
        inputs.append({"fed": name, "constant": b.weights(*state), "zero": ""}[states])
    names = [name if name in outputs else "" for name in ("y", "h", "c")[: 3 if kind == "LSTM" else 2]]
    extra = {"layout": layout} if layout else {}
    node = helper.make_node(kind, inputs, names, direction=direction, hidden_size=hidden, name="r", **extra)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
    b.nodes.append(node)
    return b.model(feeds, dict.fromkeys(name for name in names if name)), feeds


@given(
    kind=st.sampled_from(["LSTM", "GRU"]),
    direction=st.sampled_from(["forward", "reverse", "bidirectional"]),
    bias=st.booleans(),
    states=st.sampled_from(["fed", "constant", "zero"]),
    lengths=st.booleans(),
    outputs=st.sampled_from([("y",), ("h",), ("y", "h"), ("y", "h", "c"), ("h", "c")]),
    clip=st.sampled_from([None, 0.3]),
    before=st.booleans(),
    steps=st.sampled_from([1, 2, 5]),
    batch=st.sampled_from([1, 2]),
    activation=st.sampled_from([None, "Relu", "tanh"]),
    seed=st.integers(0, 99),
)
@settings(deadline=None)
def test_it_computes_the_same(kind, direction, clip, before, activation, **form):
    extra = {} if clip is None else {"clip": clip}
    if kind == "GRU":
        extra["linear_before_reset"] = int(before)
    if activation:
        count = 2 if direction == "bidirectional" else 1
        extra["activations"] = ["Sigmoid", activation, "Tanh"][: 3 if kind == "LSTM" else 2] * count
    model, feeds = recurrent(kind, direction, **form, **extra)
    before_pass = copy(model)
    assert unroll_recurrent.run(model).changed == 1
    assert kind not in op_types(model)
    assert_same_floats(before_pass, model, **feeds)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("states", ["fed", "constant"])
def test_batch_first_is_the_same_transposed(kind, direction, states):
    """The CPU runs no layout 1, so layout 0 is the reference."""
    model, _ = recurrent(kind, direction, layout=1, states=states, batch=3)
    reference, feeds = recurrent(kind, direction, states=states, batch=3)
    if states == "constant":  # the same numbers in the other order
        for one, other in zip(model.graph.initializer, reference.graph.initializer, strict=True):
            if list(one.dims) != list(other.dims):
                value = onnx.numpy_helper.to_array(other).transpose(1, 0, 2)
                one.CopyFrom(onnx.numpy_helper.from_array(np.ascontiguousarray(value), one.name))
    unroll_recurrent.run(model)
    random = np.random.default_rng(0)
    fed = {name: random.standard_normal(shape).astype(np.float32) for name, shape in feeds.items()}
    expected = Session(reference, threads=1).run(fed)
    found = Session(model, threads=1).run({name: value.transpose(1, 0, 2) for name, value in fed.items()})
    np.testing.assert_allclose(found["y"], expected["y"].transpose(2, 0, 1, 3), atol=1e-5)
    np.testing.assert_allclose(found["h"], expected["h"].transpose(1, 0, 2), atol=1e-5)


def test_a_cleaned_model_has_none_and_knows_where_its_nodes_come_from():
    model, feeds = recurrent("LSTM", "bidirectional")
    cleaned = clean(model, {})
    assert set(op_types(cleaned.model)) <= {
        *("Gemm", "MatMul", "Add", "Mul", "Sigmoid", "Tanh", "Split", "Concat", "Reshape")
    }
    assert_traced(model, cleaned)
    assert_same_floats(model, cleaned.model, **feeds)


def refused(model, says):
    with pytest.raises(StepError, match=says) as caught:
        unroll_recurrent.run(model)
    assert caught.value.where == "node r (LSTM)"
    assert caught.value.remedy


def test_peepholes_are_refused():
    model, _ = recurrent()
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((1, 15), np.float32), "p"))
    model.graph.node[0].input.append("p")
    refused(model, "peepholes")


def test_sequences_of_their_own_lengths_are_refused():
    model, _ = recurrent(lengths=True)
    lengths = next(t for t in model.graph.initializer if t.name == model.graph.node[0].input[4])
    lengths.CopyFrom(onnx.numpy_helper.from_array(np.array([4, 3], np.int32), lengths.name))
    refused(model, "other lengths than 4")


def test_what_else_is_not_supported_is_refused():
    refused(recurrent(input_forget=1)[0], "coupled")
    refused(recurrent(activations=["HardSigmoid", "Tanh", "Tanh"])[0], "HardSigmoid")
    model, _ = recurrent()
    model.graph.input.append(helper.make_tensor_value_info(model.graph.node[0].input[1], 1, [1, 20, 3]))
    refused(model, "weights are computed")
    model, _ = recurrent(steps="n")
    refused(model, "no static shape")


def test_more_nodes_than_can_be_handled_are_refused():
    refused(recurrent(steps=3000)[0], "over 3000 steps, .* more than 20000 nodes")
