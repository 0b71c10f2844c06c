"""ReduceProd becomes multiplications."""

from __future__ import annotations

import numpy as np
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.graph.passes import lower_reduce_prod


@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4),
    data=st.data(),
    keepdims=st.booleans(),
    opset=st.sampled_from([17, 18]),
)
@settings(deadline=None)
def test_any_axes(shape, data, keepdims, opset):
    axes = data.draw(st.one_of(st.none(), st.sets(st.integers(-len(shape), -1), min_size=1).map(sorted)))
    b = Builder()
    stated = {"axes": axes} if opset < 18 and axes else {}
    b.node(
        "ReduceProd",
        ["x", b.constant(np.array(axes))] if opset >= 18 and axes else ["x"],
        "y",
        **{"keepdims": int(keepdims), **stated},
    )
    model = b.model({"x": shape}, {"y": None}, opset=opset)
    before = copy(model)
    assert lower_reduce_prod.run(model).changed == 1
    assert set(op_types(model)) <= {"Split", "Mul", "Concat", "Reshape"}
    assert_same_floats(before, model, x=shape)


def test_a_long_axis_takes_few_nodes():
    b = Builder()
    b.node("ReduceProd", ["x"], "y", axes=[1])
    model = b.model({"x": [1, 1000]}, {"y": None})
    lower_reduce_prod.run(model)
    assert len(model.graph.node) < 40


def test_computed_axes_and_empty_values_are_noted():
    b = Builder()
    b.node("ReduceProd", ["x", b.node("Cast", ["p"], to=7)], "y")
    assert lower_reduce_prod.run(b.model({"x": [2, 3], "p": [1]}, {"y": None}, opset=18)).notes
    b = Builder()
    b.node("ReduceProd", ["x"], "y", axes=[1])
    assert lower_reduce_prod.run(b.model({"x": [2, 0]}, {"y": None})).notes
