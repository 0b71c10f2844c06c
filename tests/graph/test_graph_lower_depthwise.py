"""A depthwise 1x1 convolution becomes a multiplication; every other convolution stays."""

from __future__ import annotations

import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.graph import clean
from anfbuild.graph.passes import lower_depthwise


@given(spatial=st.integers(1, 3), bias=st.booleans(), batch=st.integers(1, 2))
def test_it_computes_the_same(spatial, bias, batch):
    b = Builder()
    b.node("Conv", ["x", b.weights(4, 1, *[1] * spatial)] + ([b.weights(4)] if bias else []), "y", group=4)
    model = b.model({"x": [batch, 4, *[3] * spatial]}, {"y": None})
    before = copy(model)
    assert lower_depthwise.run(model).changed == 1
    assert op_types(model) == ["Mul", "Add"][: 2 if bias else 1]
    assert_same_floats(before, model, x=[batch, 4, *[3] * spatial])


@pytest.mark.parametrize(
    ("shape", "attributes", "notes"),
    [
        ((4, 1, 3, 3), {"group": 4}, 0),
        ((4, 2, 1, 1), {"group": 2}, 0),
        ((8, 1, 1, 1), {"group": 4}, 0),
        ((4, 4, 1, 1), {}, 0),
        ((4, 1, 1, 1), {"group": 4, "strides": [2, 2]}, 1),
        ((4, 1, 1, 1), {"group": 4, "pads": [1, 0, 0, 0]}, 1),
    ],
)
def test_any_other_convolution_stays(shape, attributes, notes):
    b = Builder()
    b.node("Conv", ["x", b.weights(*shape)], "y", **attributes)
    model = b.model({"x": [1, 4, 5, 5]}, {"y": None})
    before = copy(model)
    result = lower_depthwise.run(model)
    assert (result.changed, len(result.notes)) == (0, notes)
    assert model == before


def test_a_neighbour_takes_it_up_with_its_normalization():
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(4, 3, 3, 3)])
    b.batchnorm(b.node("Conv", [hidden, b.weights(4, 1, 1, 1)], group=4), 4, "y")
    model = b.model({"x": [1, 3, 5, 5]}, {"y": None})
    cleaned = clean(model, {}).model
    assert op_types(cleaned) == ["Conv"]
    assert_same_floats(model, cleaned, x=[1, 3, 5, 5])
