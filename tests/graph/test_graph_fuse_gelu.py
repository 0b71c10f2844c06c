"""A GELU that is written out becomes one Gelu."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, assert_traced, copy, op_types
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.graph import clean
from anfbuild.graph.passes import fuse_gelu


def scalar(b, value):
    return b.constant(np.float32(value))


def both(b, op, first, second, swap):
    return b.node(op, [second, first] if swap else [first, second])


def written_out(b, x, *, kind="erf", order="last", divides=True, swap=False):
    """x (1 + f(x)) / 2, the half multiplied at the place `order` says."""
    if kind == "erf":
        argument = (
            b.node("Div", [x, scalar(b, math.sqrt(2))]) if divides else both(b, "Mul", x, scalar(b, 0.70710677), swap)
        )
        function = b.node("Erf", [argument])
    else:
        cube = both(b, "Mul", b.node("Pow", [x, scalar(b, 3)]), scalar(b, 0.044715), swap)
        function = b.node(
            "Tanh", [both(b, "Mul", both(b, "Add", x, cube, swap), scalar(b, math.sqrt(2 / math.pi)), swap)]
        )
    total = both(b, "Add", function, scalar(b, 1), swap)
    if order == "x":
        return both(b, "Mul", both(b, "Mul", x, scalar(b, 0.5), swap), total, swap)
    if order == "sum":
        return both(b, "Mul", x, both(b, "Mul", total, scalar(b, 0.5), swap), swap)
    return both(b, "Mul", both(b, "Mul", x, total, swap), scalar(b, 0.5), swap)


@given(
    kind=st.sampled_from(["erf", "tanh"]),
    order=st.sampled_from(["x", "sum", "last"]),
    divides=st.booleans(),
    swap=st.booleans(),
    opset=st.sampled_from([17, 20]),
)
@settings(deadline=None)
def test_every_form_is_fused(opset, **form):
    b = Builder()
    b.node("Mul", [written_out(b, b.node("Neg", ["x"]), **form), b.weights(1)], "y")
    model = b.model({"x": [2, 30]}, {"y": None}, opset=opset)
    before = copy(model)
    assert fuse_gelu.run(model).changed == 1
    assert op_types(model) == ["Neg", "Gelu", "Mul"]
    assert model.opset_import[0].version == 20
    assert_same_floats(before, model, x=[2, 30])


def test_the_fused_node_comes_from_all():
    b = Builder()
    written_out(b, "x")
    b.nodes[-1].output[0] = "y"
    model = b.model({"x": [2, 3]}, {"y": [2, 3]})
    assert_traced(model, clean(model, {}))


def test_what_the_conversion_changes_stays_equal():
    b = Builder()
    hidden = written_out(b, b.node("Conv", ["x", b.weights(4, 3, 1, 1)]))
    parts = [f"p{i}" for i in range(2)]
    b.node("Split", [hidden], parts[0], axis=1)
    b.nodes[-1].output.append(parts[1])
    mean = b.node("ReduceMean", [parts[0]], axes=[1])
    large = b.node("Resize", [parts[1], "", b.constant(np.array([1, 1, 2, 2], np.float32))], mode="linear")
    b.node(
        "Add", [b.node("ReduceMax", [large], axes=[2, 3]), b.node("Pad", [mean, b.constant(np.array([0] * 8))])], "y"
    )
    model = b.model({"x": [1, 3, 4, 4]}, {"y": None})
    cleaned = clean(model, {})
    assert_traced(model, cleaned)
    assert "Gelu" in op_types(cleaned.model)
    assert_same_floats(model, cleaned.model, x=[1, 3, 4, 4])


@pytest.mark.parametrize("spoil", ["half", "root", "other", "read"])
def test_what_is_another_function_stays(spoil):
    b = Builder()
    written_out(b, "x")
    b.nodes[-1].output[0] = "y"
    constants = {"half": -1, "root": 0}
    outputs = {"y": None}
    if spoil in constants:
        b.initializers[constants[spoil]].CopyFrom(
            onnx.numpy_helper.from_array(np.float32(0.7), b.initializers[constants[spoil]].name)
        )
    elif spoil == "other":
        b.nodes[0].input[0] = "z"
    else:
        outputs[b.nodes[1].output[0]] = None
    model = b.model({"x": [2, 3], "z": [2, 3]}, outputs)
    before = copy(model)
    assert fuse_gelu.run(model).changed == 0
    assert model == before
