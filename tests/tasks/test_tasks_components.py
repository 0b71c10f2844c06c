from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from anfbuild.tasks.components import components


def flooded(bitmap: NDArray[np.bool_]) -> set[frozenset[tuple[int, int]]]:
    """The components as sets of (x, y), pixel by pixel."""
    left = {(int(x), int(y)) for y, x in np.argwhere(bitmap)}
    found = set()
    while left:
        front, group = [left.pop()], set()
        while front:
            x, y = front.pop()
            group.add((x, y))
            near = {(x + dx, y + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)} & left
            left -= near
            front += near
        found.add(frozenset(group))
    return found


@given(arrays(np.bool_, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.booleans()))
def test_groups_are_those_of_a_flood_fill(bitmap: NDArray[np.bool_]) -> None:
    groups = [{(int(x), int(y)) for x, y in group} for group in components(bitmap)]
    expected = flooded(bitmap)
    assert len(groups) == len(expected)
    for group in groups:
        (whole,) = [candidate for candidate in expected if group <= candidate]
        ends = set()
        for row in {y for _, y in whole}:
            xs = [x for x, y in whole if y == row]
            ends |= {(min(xs), row), (max(xs), row)}
        assert group == ends


def test_order_is_that_of_first_pixels() -> None:
    bitmap = np.zeros((6, 9), np.bool_)
    bitmap[0:5, 6] = bitmap[1, 0:2] = bitmap[5, 0] = True
    assert [tuple(group[0]) for group in components(bitmap)] == [(6, 0), (0, 1), (0, 5)]


def test_nothing_in_nothing() -> None:
    assert components(np.zeros((3, 4), np.bool_)) == []
