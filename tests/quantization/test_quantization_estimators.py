from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.errors import RecipeError
from anfbuild.quantization.estimators import ESTIMATORS, check
from anfbuild.quantization.histogram import Histogram, TensorStatistics
from anfbuild.quantization.ranges import estimate
from anfbuild.quantization.statistics import Statistics

KINDS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "normal": lambda r: r.standard_normal(4000),
    "heavy tailed": lambda r: r.standard_t(2.2, 4000),
    "after a Relu": lambda r: np.maximum(r.standard_normal(4000) - 0.5, 0),
    "one outlier": lambda r: np.append(r.standard_normal(4000), 200.0),
    "negative": lambda r: -np.abs(r.standard_normal(4000)) - 1,
    "uniform": lambda r: r.uniform(-3, 5, 4000),
    "constant": lambda r: np.full(100, r.uniform(-5, 5)),
    "zero": lambda r: 0 * r.uniform(size=100),
}
tensors = st.builds(
    lambda kind, seed, scale: (KINDS[kind](np.random.default_rng(seed)) * scale).astype(np.float32),
    st.sampled_from(sorted(KINDS)),
    st.integers(0, 10_000),
    st.sampled_from([1e-3, 1.0, 1e4]),
)


def statistics_of(values: np.ndarray) -> TensorStatistics:
    histogram = Histogram()
    histogram.add(values, values, values)
    return histogram.statistics()


def range_of(values: np.ndarray, estimator: str, bits: int = 8, percentile: float = 99.99) -> tuple[float, float]:
    return ESTIMATORS[estimator]()(statistics_of(values), bits, percentile)


def quantization_error(values: np.ndarray, lo: float, hi: float, bits: int) -> float:
    """The mean squared error of really quantizing `values` with the range [lo, hi]."""
    steps = 2**bits - 1
    step = (hi - lo) / steps or 1.0
    zero = round(-lo / step)
    integers = np.clip(np.rint(values / step) + zero, 0, steps)
    return float(np.mean(((integers - zero) * step - values) ** 2))


@given(tensors)
@settings(deadline=None, max_examples=40)
def test_minmax_is_the_exact_range_with_zero(values: np.ndarray) -> None:
    assert range_of(values, "minmax") == (min(values.min(), 0), max(values.max(), 0))


@given(tensors, st.sampled_from([90.0, 99.0, 99.9, 100.0]))
@settings(deadline=None, max_examples=60)
def test_percentile_cuts_what_sorting_says_to_one_bin(values: np.ndarray, percentile: float) -> None:
    cut = (100 - percentile) / 2
    lo, hi = range_of(values, "percentile", percentile=percentile)
    width = statistics_of(values).bin_width
    ordered = values.astype(np.float64)
    lower = np.percentile(ordered, cut, method="higher"), np.percentile(ordered, cut, method="lower")
    upper = np.percentile(ordered, 100 - cut, method="lower"), np.percentile(ordered, 100 - cut, method="higher")
    assert min(lower[1], 0) - width <= lo <= max(min(lower[0], 0), -0.0) + width
    assert max(upper[0], 0) - width <= hi <= max(upper[1], 0) + width


@given(tensors, st.sampled_from([4, 8]))
@settings(deadline=None, max_examples=25)
def test_mse_is_as_good_as_trying_every_clipped_range(values: np.ndarray, bits: int) -> None:
    lo, hi = range_of(values, "mse", bits)
    full = min(values.min(), 0.0), max(values.max(), 0.0)
    shares = np.geomspace(1, 0.01, 25)
    tried = [
        quantization_error(values, full[0] * a, full[1] * b, bits)
        for a in (shares if full[0] < 0 else [0.0])
        for b in (shares if full[1] > 0 else [0.0])
    ]
    step = (hi - lo) / (2**bits - 1)
    # 5 % are given away for a wider range; few values near a code by chance cannot be foreseen from their spread.
    assert quantization_error(values, lo, hi, bits) <= 1.2 * min(tried) + 0.1 * step**2 / 12 + 1e-9


@given(tensors, st.sampled_from(sorted(ESTIMATORS)), st.sampled_from([8, 16]))
@settings(deadline=None, max_examples=60)
def test_ranges_hold_zero_inside_the_extremes(values: np.ndarray, estimator: str, bits: int) -> None:
    lo, hi = range_of(values, estimator, bits)
    assert min(values.min(), 0) <= lo <= 0 <= hi <= max(values.max(), 0)


def test_mse_clips_one_outlier_that_minmax_keeps() -> None:
    values = np.append(np.random.default_rng(0).standard_normal(1_000_000), 100.0).astype(np.float32)
    assert range_of(values, "minmax")[1] == 100
    assert range_of(values, "mse")[1] < 60


def test_estimates_are_rounded_outward_to_12_bits() -> None:
    values = np.array([-1 / 3, 0, 2 / 3], np.float32)
    lo, hi = estimate(Statistics({"t": statistics_of(values)}, 1), "minmax", bits=8)["t"]
    assert lo <= values[0]
    assert hi >= values[2]
    assert (lo * 2**13, hi * 2**12) == (-2731, 2731)
    nudged = np.nextafter(values, np.float32(9), dtype=np.float32)
    assert estimate(Statistics({"t": statistics_of(nudged)}, 1), "minmax", bits=8)["t"] == (lo, hi)


def test_unknown_estimator_and_bad_percentile_are_refused() -> None:
    with pytest.raises(RecipeError, match="did you mean 'mse'"):
        check("msee", 99.99)
    with pytest.raises(RecipeError, match="over 50 and at most 100"):
        check("percentile", 0.9999)
