"""A layer normalization that is written out becomes one node; anything that only looks like it stays."""

from __future__ import annotations

import numpy as np
import pytest
from graph_models import Builder, assert_same_floats, assert_traced, copy, op_types
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.graph import clean
from anfbuild.graph.passes import fuse_layernorm


def written_out(
    b, value, output=None, *, axes=(-1,), power=True, two=False, scale=None, shift=None, opset=17, eps=1e-5
):
    def mean(name):
        if opset >= 18:
            return b.node("ReduceMean", [name, b.constant(np.array(axes))])
        return b.node("ReduceMean", [name], axes=list(axes))

    average = mean(value)
    difference = b.node("Sub", [value, average])
    other = b.node("Sub", [value, average]) if two else difference
    square = b.node("Pow", [other, b.constant(np.float32(2))]) if power else b.node("Mul", [other, other])
    root = b.node("Sqrt", [b.node("Add", [mean(square), b.constant(np.float32(eps))])])
    last = output if scale is None and shift is None else None
    value = b.node("Div", [difference, root], last)
    if scale is not None:
        value = b.node("Mul", [value, scale], output if shift is None else None)
    if shift is not None:
        value = b.node("Add", [value, shift], output)
    return value


@given(
    axes=st.sampled_from([(-1,), (2,), (1, 2), (-2, -1)]),
    power=st.booleans(),
    two=st.booleans(),
    scaled=st.booleans(),
    shifted=st.booleans(),
    opset=st.sampled_from([17, 18]),
)
@settings(deadline=None)
def test_every_form_is_fused(axes, power, two, scaled, shifted, opset):
    b = Builder()
    size = [3, 4] if len(axes) == 2 else [4]
    forms = {"axes": axes, "power": power, "two": two, "opset": opset}
    written_out(
        b, "x", "y", **forms, scale=b.weights(*size) if scaled else None, shift=b.weights(*size) if shifted else None
    )
    model = b.model({"x": [2, 3, 4]}, {"y": None}, opset=opset)
    before = copy(model)
    assert fuse_layernorm.run(model).changed == 1
    assert op_types(model) == ["LayerNormalization"]
    assert_same_floats(before, model, x=[2, 3, 4])


def test_the_fused_node_comes_from_all():
    b = Builder()
    written_out(b, "x", "y", scale=b.weights(4), shift=b.weights(4))
    model = b.model({"x": [2, 3, 4]}, {"y": [2, 3, 4]})
    assert_traced(model, clean(model, {}))


@pytest.mark.parametrize("spoil", ["channels", "read", "other", "broadcast"])
def test_what_is_another_function_stays(spoil):
    b = Builder()
    scale = b.weights(3, 1) if spoil == "broadcast" else b.weights(4)
    written_out(b, "x", "y", axes=(1,) if spoil == "channels" else (-1,), scale=scale)
    if spoil == "other":
        b.nodes[-6 if b.nodes[-1].op_type != "Mul" else 4 - 1].input[0] = "x"
    outputs = {"y": None, **({b.nodes[1].output[0]: None} if spoil == "read" else {})}
    model = b.model({"x": [2, 3, 4]}, outputs)
    before = copy(model)
    fuse_layernorm.run(model)
    if spoil == "broadcast":
        assert op_types(model) == ["LayerNormalization", "Mul"]
    else:
        assert model == before
    assert_same_floats(before, model, x=[2, 3, 4])
