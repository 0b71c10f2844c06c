from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from anfbuild.tasks import bootstrap

COUNTS = np.array([[9, 10], [5, 10], [10, 10], [7, 10], [8, 10], [2, 10]])


def share(totals: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(totals[..., 0] / totals[..., 1])


def test_interval_is_around_the_value_and_the_same_every_time() -> None:
    low, high = bootstrap.interval(COUNTS, share)
    assert 0.2 <= low < share(COUNTS.sum(axis=0)) < high <= 1
    assert bootstrap.interval(COUNTS, share) == (low, high)
    assert bootstrap.interval(COUNTS, share, seed=1) != (low, high)


def test_interval_of_equal_samples_is_a_point() -> None:
    assert bootstrap.interval(np.array([[1, 2]] * 5), share) == (0.5, 0.5)


def test_interval_agrees_with_the_normal_approximation() -> None:
    # The mean of 400 samples that are 0 or 1 with a chance of one half: 1.96 * 0.5 / sqrt(400) = 0.049.
    counts = np.stack([np.arange(400) % 2, np.ones(400, np.int64)], axis=1)
    low, high = bootstrap.interval(counts, share)
    assert low == pytest.approx(0.5 - 0.049, abs=0.006)
    assert high == pytest.approx(0.5 + 0.049, abs=0.006)


def test_drop_is_paired() -> None:
    assert bootstrap.drop_interval(COUNTS, COUNTS, share) == (0, 0)
    worse = COUNTS - [1, 0]
    assert bootstrap.drop_interval(COUNTS, worse, share) == pytest.approx((0.1, 0.1))
    low, high = bootstrap.drop_interval(worse, COUNTS, share)
    assert (low, high) == pytest.approx((-0.1, -0.1))


def test_refuses_other_samples() -> None:
    with pytest.raises(ValueError, match="not the same samples"):
        bootstrap.drop_interval(COUNTS, COUNTS[1:], share)
