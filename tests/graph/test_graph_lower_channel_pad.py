"""Channels are added by Concat, everything else is padded as before."""

from __future__ import annotations

import numpy as np
import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.graph.passes import lower_channel_pad

amounts = st.lists(st.integers(0, 3), min_size=4, max_size=4)


@given(front=amounts, back=amounts, value=st.sampled_from([None, 0.0, 2.5]), with_axes=st.booleans())
def test_it_gives_the_same_tensor(front, back, value, with_axes):
    b = Builder()
    inputs = ["x", b.constant(np.array(front + back))] + ([b.constant(np.float32(value))] if value is not None else [])
    if with_axes:
        inputs = [*inputs, "", b.constant(np.arange(4))] if value is None else [*inputs, b.constant(np.arange(4))]
    b.node("Pad", inputs, "y")
    model = b.model({"x": [1, 3, 4, 5]}, {"y": None}, opset=18)
    before = copy(model)
    result = lower_channel_pad.run(model)
    others = any(front[axis] or back[axis] for axis in (0, 2, 3))
    if front[1] or back[1]:
        assert result.changed == 1
        assert op_types(model) == ["Pad", "Concat"] if others else ["Concat"]
    else:
        assert model == before
    assert_same_floats(before, model, x=[1, 3, 4, 5])


@pytest.mark.parametrize(
    ("pads", "mode", "says"),
    [
        ([0, 2**30, 0, 0, 0, 0, 0, 0], "constant", "too large"),
        ([0, 1, 0, 0, 0, 1, 0, 0], "reflect", "repeats or cuts"),
        ([0, 2, 0, 0, 0, -1, 0, 0], "constant", "repeats or cuts"),
        (None, "constant", "not known"),
    ],
)
def test_what_stays_is_noted(pads, mode, says):
    b = Builder()
    amounts = b.constant(np.array(pads)) if pads else b.node("Cast", ["p"], to=7)
    b.node("Pad", ["x", amounts], "y", mode=mode)
    model = b.model({"x": [1, 3, 4, 5], "p": [8]}, {"y": None})
    before = copy(model)
    result = lower_channel_pad.run(model)
    assert says in result.notes[0]
    assert model == before
