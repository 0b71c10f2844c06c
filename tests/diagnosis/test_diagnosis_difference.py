"""What a difference is: shares of a range, border and inside, values that are no numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anfbuild.diagnosis.difference import difference, ring_width

MAP = (1, 2, 16, 16)


def of(reference: np.ndarray, other: np.ndarray, span: float | None = None):
    return difference("t", [reference], [other], span)


def test_figures_are_shares_of_the_range() -> None:
    reference = np.array([0.0, 2.0, 4.0, -4.0], np.float32)
    found = of(reference, reference + np.array([0, 0.8, 0, 0], np.float32))
    assert found.whole.max == pytest.approx(0.1)
    assert found.whole.rms == pytest.approx(0.05)
    assert found.sqnr_db == pytest.approx(10 * math.log10(36 / 0.64))
    assert of(reference, reference + 1, span=100.0).whole.max == pytest.approx(0.01)


def test_a_range_has_zero_in_it_and_that_of_nothing_is_one() -> None:
    assert of(np.full(4, 10.0), np.full(4, 11.0)).whole.max == pytest.approx(0.1)
    assert of(np.zeros(4), np.full(4, 0.25)).whole.max == pytest.approx(0.25)


@pytest.mark.parametrize("shape", [MAP, (1, 16, 16, 2)], ids=["NCHW", "NHWC"])
def test_a_fault_at_the_edge_is_told_from_one_inside(shape: tuple[int, ...]) -> None:
    reference = np.random.default_rng(0).uniform(-1, 1, shape)
    edge, inside = reference.copy(), reference.copy()
    spatial = (0, 0) if shape == MAP else (0,)
    edge[(*spatial, 0)] += 0.5
    inside[(*spatial, 8)] += 0.5
    at_edge, at_inside = of(reference, edge), of(reference, inside)
    assert at_edge.at_border
    assert at_edge.interior is not None
    assert at_edge.interior.max == 0
    assert not at_inside.at_border
    assert not of(reference, reference).at_border


def test_the_ring_grows_with_the_map_and_what_is_no_map_has_none() -> None:
    assert [ring_width((1, 1, side, 2 * side)) for side in (16, 64, 960)] == [1, 2, 30]
    assert ring_width((1, 1000)) is None
    assert ring_width((1, 64, 1, 1)) is None
    assert of(np.zeros((1, 10)), np.ones((1, 10))).border is None


def test_values_that_are_equal_differ_by_nothing_infinite_ones_too() -> None:
    values = np.array([np.inf, -np.inf, np.nan, 1.0])
    assert of(values, values).whole.max == 0


@pytest.mark.parametrize("other", [np.array([np.nan, 1.0]), np.array([np.inf, 1.0]), np.zeros(3)])
def test_no_number_and_another_shape_are_past_every_bound(other: np.ndarray) -> None:
    found = of(np.array([1.0, 1.0]), other)
    assert found.whole.max == math.inf
    assert found.to_json()["max"] is None
