import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from anfbuild.quantization.histogram import BINS, Histogram, TensorStatistics

floats = st.floats(-(2.0**40), 2.0**40, width=32, allow_subnormal=False).filter(lambda v: v == 0 or abs(v) > 1e-25)
chunks = st.lists(hnp.arrays(np.float32, st.integers(1, 30), elements=floats), min_size=1, max_size=6)


def count(parts: list[np.ndarray]) -> TensorStatistics:
    histogram = Histogram()
    for part in parts:
        histogram.add(part, part, part)
    return histogram.statistics()


@given(chunks)
@settings(deadline=None)
def test_no_value_is_lost_and_every_value_is_in_its_bin(parts: list[np.ndarray]) -> None:
    found = count(parts)
    values = np.concatenate(parts).astype(np.float64)
    assert (found.low, found.high) == (values.min(), values.max())
    assert found.zeros == (values == 0).sum()
    assert len(found.counts) <= BINS
    bins = np.floor(values / found.bin_width) - round(found.first_edge / found.bin_width)
    np.testing.assert_array_equal(np.bincount(bins.astype(int), minlength=len(found.counts)), found.counts)


@given(chunks)
@settings(deadline=None)
def test_the_order_of_the_samples_does_not_matter(parts: list[np.ndarray]) -> None:
    one, other = count(parts), count(parts[::-1])
    assert (one.first_edge, one.bin_width, one.zeros) == (other.first_edge, other.bin_width, other.zeros)
    np.testing.assert_array_equal(one.counts, other.counts)


def test_a_later_sample_far_outside_widens_the_range() -> None:
    found = count([np.linspace(0, 1, 1000, dtype=np.float32), np.array([1000.0], np.float32)])
    assert found.counts.sum() == 1001
    assert found.counts[-1] == 1
    assert found.bin_width * BINS >= 1000 > found.bin_width * BINS / 4


def test_extremes_of_rows_raise_the_tails_of_a_sample_and_keep_its_sum() -> None:
    rows = np.random.default_rng(0).standard_t(3, (64, 500)).astype(np.float32)
    sample = rows.ravel()[::100]
    histogram = Histogram()
    histogram.add(sample, rows.min(axis=1), rows.max(axis=1), weight=100)
    found = histogram.statistics()
    assert found.counts.sum() == 100 * len(sample)
    edges = found.first_edge + found.bin_width * np.arange(len(found.counts))
    for limit in (rows.max(axis=1).min(), rows.max() * 0.5, rows.max()):
        bin_ = np.searchsorted(edges, limit, side="right") - 1
        assert found.counts[bin_:].sum() >= (rows.max(axis=1) >= limit).sum()
