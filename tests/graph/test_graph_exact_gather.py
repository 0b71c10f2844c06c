"""A Gather that the HTP would compute wrongly takes the same elements along the last axis."""

from __future__ import annotations

import numpy as np
import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.graph import clean
from anfbuild.graph.passes import exact_gather


def gather(data, indices, axis, *, table=False):
    b = Builder()
    values = b.weights(*data) if table else "x"
    taken = b.node("Gather", [values, b.constant(np.resize(np.arange(data[axis])[::-1], indices))], axis=axis)
    b.node("Relu", [taken], "y", name="relu")
    return b.model({"x": data}, {"y": None})


@given(
    data=st.lists(st.sampled_from([1, 2, 3, 4, 8, 16]), min_size=2, max_size=4),
    indices=st.lists(st.sampled_from([1, 5, 8, 31, 32]), min_size=0, max_size=2),
    number=st.integers(0, 3),
    from_behind=st.booleans(),
    table=st.booleans(),
)
@settings(deadline=None)
def test_the_same_floats_and_none_that_is_wrong(data, indices, number, from_behind, table):
    axis = number % len(data) - len(data) * from_behind
    model = gather(data, indices, axis, table=table)
    before = copy(model)
    wrong = exact_gather.is_wrong(data, axis, indices, (1, 2))
    assert exact_gather.run(model).changed == wrong
    assert_same_floats(before, model, x=data)
    assert exact_gather.run(model).changed == 0


def test_a_table_is_turned_itself():
    model = gather([20, 8], [40], 0, table=True)
    exact_gather.run(model)
    assert op_types(model) == ["Gather", "Transpose", "Relu"]


def test_more_than_five_axes_are_noted():
    model = gather([1, 1, 2, 20, 8], [4, 8], 3)
    before = copy(model)
    assert "too many axes" in exact_gather.run(model).notes[0]
    assert model == before


def test_what_brings_its_encoding_is_noted():
    b = Builder()
    step, zero = b.constant(np.array(0.01, np.float32)), b.constant(np.array(128, np.uint8))
    x = b.node("DequantizeLinear", [b.node("QuantizeLinear", ["x", step, zero]), step, zero])
    b.node("Gather", [x, b.constant(np.arange(40) % 16)], "y", axis=1)
    model = b.model({"x": [2, 16, 8]}, {"y": None})
    before = copy(model)
    assert "it has an encoding" in exact_gather.run(model).notes[0]
    assert model == before


@pytest.mark.parametrize("length", [33, 40])
def test_what_comes_of_a_resize_is_turned_too_and_traced_to_it(length):
    b = Builder()
    sizes = b.constant(np.array([1, 3, length, 8]))
    b.node("Resize", ["x", "", "", sizes], "y", mode="nearest", nearest_mode="ceil", name="up")
    model = b.model({"x": [1, 3, 6, 8]}, {"y": None})
    cleaned = clean(copy(model), {})
    assert op_types(cleaned.model) == ["Transpose", "Gather", "Transpose"]
    assert list(cleaned.provenance.values()) == [["up"]] * 3
    assert_same_floats(model, cleaned.model, x=[1, 3, 6, 8])


def test_nothing_is_wrong_of_a_value_without_axes():
    assert not exact_gather.is_wrong([], 0, [32], (1, 2))
