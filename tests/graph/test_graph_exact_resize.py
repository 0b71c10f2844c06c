"""A nearest Resize takes the samples that it states, in a mode that the HTP knows."""

from __future__ import annotations

import numpy as np
import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.graph import Session
from anfbuild.graph.passes import exact_resize


def resize(coordinates, rounding, *, scales=None, sizes=None, opset=17, **attributes):
    b = Builder()
    inputs = ["x", "", b.constant(np.array(scales, np.float32))] if scales else ["x", "", "", b.constant(sizes)]
    attributes = {"mode": "nearest", **attributes}
    b.node(*("Resize", inputs, "y"), coordinate_transformation_mode=coordinates, nearest_mode=rounding, **attributes)
    return b.model({"x": [1, 2, 4, 6]}, {"y": None}, opset=opset)


@given(
    coordinates=st.sampled_from(["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]),
    rounding=st.sampled_from(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
    factors=st.one_of(
        st.tuples(st.just("scales"), st.tuples(*[st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 0.3])] * 2)),
        st.tuples(st.just("sizes"), st.tuples(*[st.integers(1, 13)] * 2)),
    ),
)
@settings(deadline=None)
def test_the_same_samples_in_a_mode_that_is_right(coordinates, rounding, factors):
    kind, (height, width) = factors
    model = resize(
        coordinates, rounding, **{kind: [1.0, 1.0, height, width] if kind == "scales" else [1, 2, height, width]}
    )
    before = copy(model)
    result = exact_resize.run(model)
    assert result.changed == (model != before)
    scales = [height, width] if kind == "scales" else [None, None]
    _, _, *after = Session(before).run({"x": np.zeros([1, 2, 4, 6], np.float32)})["y"].shape
    axes = [axis for axis in zip([4, 6], after, scales, strict=True) if axis[0] != axis[1] or axis[2] not in (None, 1)]
    for node in model.graph.node:
        if node.op_type == "Resize":
            found = {entry.name: entry.s.decode() for entry in node.attribute}
            modes = (found["coordinate_transformation_mode"], found["nearest_mode"])
            assert exact_resize.is_right(modes, axes)
        else:
            assert node.op_type == "Gather"
    assert_same_floats(before, model, x=[1, 2, 4, 6])


def test_enlarging_by_a_whole_number_stays_one_node():
    model = resize("asymmetric", "round_prefer_floor", scales=[1, 1, 2, 2])
    exact_resize.run(model)
    assert op_types(model) == ["Resize"]


# What the emulator was seen to take otherwise than stated, and as stated: benchmarks/exactness.py.
@pytest.mark.parametrize(
    ("modes", "before", "after", "scale", "right"),
    [
        (("half_pixel", "round_prefer_floor"), 4, 7, None, False),
        (("half_pixel", "round_prefer_floor"), 8, 12, 1.5, False),
        (("half_pixel", "round_prefer_floor"), 8, 4, 0.5, False),
        (("half_pixel", "round_prefer_floor"), 3, 5, None, True),
        (("half_pixel", "round_prefer_floor"), 8, 24, 3.0, True),
        (("half_pixel", "round_prefer_ceil"), 4, 7, None, True),
        (("half_pixel", "floor"), 8, 16, 2.0, False),
        (("align_corners", "round_prefer_floor"), 3, 5, None, False),
        (("align_corners", "round_prefer_ceil"), 5, 9, None, False),
        (("align_corners", "round_prefer_ceil"), 8, 16, None, True),
        (("pytorch_half_pixel", "round_prefer_floor"), 3, 5, None, False),
        (("pytorch_half_pixel", "round_prefer_ceil"), 8, 12, 1.5, False),
        (("pytorch_half_pixel", "round_prefer_floor"), 8, 16, 2.0, True),
        (("asymmetric", "floor"), 8, 15, None, True),
        (("asymmetric", "round_prefer_ceil"), 8, 16, None, False),
    ],
)
def test_what_the_htp_takes_as_stated(modes, before, after, scale, right):
    assert exact_resize.is_right(modes, [(before, after, scale)]) == right


def test_some_axes_only():
    model = resize("half_pixel", "floor", scales=[3.0, 2.0], opset=18, axes=[-1, 2])
    before = copy(model)
    assert exact_resize.run(model).changed == 1
    assert_same_floats(before, model, x=[1, 2, 4, 6])


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (resize("half_pixel", "floor", mode="linear", scales=[1, 1, 0.5, 0.5], opset=18, antialias=1), "antialias"),
        (resize("half_pixel", "floor", mode="cubic", scales=[1, 1, 3, 3]), "factor of 2"),
        (
            resize("half_pixel", "floor", sizes=[1, 2, 8, 8], opset=18, keep_aspect_ratio_policy="not_larger"),
            "aspect ratio",
        ),
    ],
)
def test_what_stays_is_noted(model, says):
    before = copy(model)
    assert says in exact_resize.run(model).notes[0]
    assert model == before


def test_interpolation_stays():
    model = resize("half_pixel", "floor", mode="linear", scales=[1, 1, 2, 2])
    before = copy(model)
    assert exact_resize.run(model).notes == []
    assert model == before
