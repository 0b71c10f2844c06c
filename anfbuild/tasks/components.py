"""Connected components of a bitmap by runs, without a loop over pixels or runs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def components(bitmap: NDArray[np.bool_]) -> list[NDArray[np.int64]]:
    """The 8-connected components of `bitmap` (height, width), in the order of their first pixels.

    Each is (points, 2) int64 of (x, y): its first and its last pixel in each row, which are enough for its hull.
    """
    rows, starts, ends = _runs(bitmap)
    if not len(rows):
        return []
    labels = _labels(len(rows), *_touching(rows, starts, ends, bitmap.shape[1]))
    order = np.argsort(labels, kind="stable")
    labels, rows, starts, ends = labels[order], rows[order], starts[order], ends[order]
    new_row = np.flatnonzero((np.diff(labels, prepend=-1) != 0) | (np.diff(rows, prepend=-1) != 0))
    last = np.append(new_row[1:], len(rows)) - 1
    points = np.stack([starts[new_row], rows[new_row], ends[last], rows[new_row]], axis=1)
    cuts = np.flatnonzero(np.diff(labels[new_row])) + 1
    return [group.reshape(-1, 2) for group in np.split(points, cuts)]


def _runs(bitmap: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Row, first and last column of each run of set pixels, in reading order."""
    padded = np.pad(bitmap, ((0, 0), (1, 1)))
    changes = np.flatnonzero(padded.ravel()[1:] != padded.ravel()[:-1])
    width = padded.shape[1]
    # The pixel before a run and the run's last pixel are where a change follows, both one column late by the padding.
    first, last = changes[::2], changes[1::2]
    return first // width, first % width, last % width - 1


def _touching(
    rows: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64], width: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of runs in neighbouring rows that touch, diagonals included."""
    stride = width + 2  # so that the column before a row's first is not the row above's last
    above = (rows - 1) * stride
    first = np.searchsorted(rows * stride + ends, above + starts - 1, side="left")
    past = np.searchsorted(rows * stride + starts, above + ends + 1, side="right")
    number = np.maximum(past - first, 0)
    lower = np.repeat(np.arange(len(rows)), number)
    offset = np.arange(len(lower)) - np.repeat(np.cumsum(number) - number, number)
    return lower, np.repeat(first, number) + offset


def _labels(count: int, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest member of each run's component: roots hook onto smaller roots, then paths are halved."""
    parent = np.arange(count)
    while True:
        high, low = np.maximum(parent[a], parent[b]), np.minimum(parent[a], parent[b])
        if np.array_equal(high, low):
            return parent
        np.minimum.at(parent, high, low)
        while not np.array_equal(parent, parent[parent]):
            parent = parent[parent]
