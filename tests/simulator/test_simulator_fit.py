"""Costs of compiled work: never negative, near the truth they were made from, and more work never costs less."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.errors import RecipeError
from anfbuild.qnn.features import Features
from anfbuild.simulator.compiled import COSTS, WORKS, latency_ms
from anfbuild.simulator.fit import PRIOR, Sample, cross_validate, fit

AMOUNTS = st.fixed_dictionaries({f"path_{name}": st.integers(0, 10**9) for name in WORKS})


def made(factor: float, count: int = 12) -> list[Sample]:
    """Measurements of a chip that is `factor` times as slow as the prior."""
    features = [
        Features(path_macs_8=10**9 * n, path_dram_bytes=10**7 * (count - n), path_starts=500 + 40 * n)
        for n in range(1, count + 1)
    ]
    return [
        Sample(f"m{n}", f"family {n % 3}", "w8a8", found, factor * latency_ms(found, PRIOR))
        for n, found in enumerate(features)
    ]


@pytest.mark.parametrize("factor", [0.3, 1.0, 7.0])
def test_a_chip_of_another_speed_is_found_and_predicts_what_it_has_not_seen(factor: float) -> None:
    samples = made(factor)
    costs = fit(samples)
    assert all(cost > 0 for cost in costs.values())
    assert costs["macs_8"] == pytest.approx(factor * PRIOR["macs_8"], rel=0.05)
    assert cross_validate(samples) == pytest.approx([1.0] * len(samples), rel=0.05)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.01, 1000), min_size=5, max_size=12))
def test_no_measurement_makes_a_cost_negative(latencies: list[float]) -> None:
    samples = [dataclasses.replace(sample, latency_ms=ms) for sample, ms in zip(made(1.0), latencies, strict=False)]
    assert all(cost > 0 for cost in fit(samples).values())


@given(AMOUNTS, st.sampled_from(WORKS))
def test_more_work_never_costs_less(amounts: dict[str, int], name: str) -> None:
    more = {**amounts, f"path_{name}": amounts[f"path_{name}"] + 1000}
    assert latency_ms(Features(**more), PRIOR) >= latency_ms(Features(**amounts), PRIOR)


def test_too_few_measurements_are_refused() -> None:
    with pytest.raises(RecipeError, match="3 measurements"):
        fit(made(1.0, count=3))
    assert set(PRIOR) == set(COSTS)
