"""Costs of compiled work: never negative, near the truth they were made from, and more work never costs less."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.errors import RecipeError
from anfbuild.qnn.features import Features
from anfbuild.simulator.compiled import COSTS, GROUPS, WORKS, latency_ms, works
from anfbuild.simulator.fit import Sample, common, cross_validate, fit
from anfbuild.simulator.prior import NEVER_FITTED, PRIOR, RESIDUAL90
from anfbuild.simulator.rates import PRECISIONS

AMOUNTS = st.fixed_dictionaries({name: st.integers(0, 10**9) for name in WORKS})
# About what each cost comes to in a model of a millisecond.
TYPICAL = {name: 0.2 / PRIOR[name] for name in WORKS}


def made(costs: dict[str, float], count: int = 12, seed: int = 0) -> list[Sample]:
    """Measurements of models of all kinds on a chip of these costs."""
    dice = random.Random(seed)
    found = [
        Features(**{name: round(amount * dice.choice((0.05, 0.5, 2.0, 8.0))) for name, amount in TYPICAL.items()})
        for _ in range(count)
    ]
    return [
        Sample(f"m{n}", f"family {n % 3}", "w8a8", features, latency_ms(features, costs))
        for n, features in enumerate(found)
    ]


def scaled(factor: float, **parts: float) -> dict[str, float]:
    """The prior's costs times `factor`, and those of a part of the chip times its own."""
    return {name: PRIOR[name] * factor * parts.get(part, 1.0) for part, names in GROUPS.items() for name in names}


@pytest.mark.parametrize("factor", [0.3, 1.0, 7.0])
def test_a_chip_of_another_speed_is_found_and_predicts_what_it_has_not_seen(factor: float) -> None:
    samples = made(scaled(factor), count=10)
    assert fit(samples) == pytest.approx(scaled(factor), rel=0.02)
    assert cross_validate(samples) == pytest.approx([1.0] * len(samples), rel=0.02)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.1, 10), st.floats(0.6, 1.6), st.floats(0.6, 1.6), st.integers(0, 50))
def test_planted_costs_are_recovered(factor: float, matrix: float, stream: float, seed: int) -> None:
    planted = scaled(factor, matrix=matrix, stream=stream)
    samples = made(planted, count=60, seed=seed)
    found = fit(samples)
    assert found["macs_8"] / found["vector_bytes"] == pytest.approx(
        planted["macs_8"] / planted["vector_bytes"], rel=0.2
    )
    for sample in samples:
        assert latency_ms(sample.features, found) == pytest.approx(sample.latency_ms, rel=0.25)  # held near the prior


def test_what_chips_have_in_common_is_found_whatever_their_speed() -> None:
    truth = dict(PRIOR) | {"heavy_bytes": PRIOR["heavy_bytes"] * 2}
    chips = [
        made({name: cost * speed for name, cost in truth.items()}, 40, seed) for seed, speed in enumerate((0.5, 2))
    ]
    found = common(chips, PRIOR)
    assert found["heavy_bytes"] / found["vector_bytes"] == pytest.approx(
        truth["heavy_bytes"] / truth["vector_bytes"], rel=0.1
    )
    assert found["macs_8"] == pytest.approx(truth["macs_8"], rel=0.1)  # the mean of half and twice


def test_one_wild_measurement_does_not_carry_the_fit_away() -> None:
    samples = made(scaled(1.0))
    wild = [dataclasses.replace(samples[0], latency_ms=samples[0].latency_ms * 50), *samples[1:]]
    assert fit(wild)["macs_8"] == pytest.approx(PRIOR["macs_8"], rel=0.35)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(0.01, 1000), min_size=5, max_size=12))
def test_no_measurement_makes_a_cost_negative(latencies: list[float]) -> None:
    samples = [
        dataclasses.replace(sample, latency_ms=ms) for sample, ms in zip(made(scaled(1.0)), latencies, strict=False)
    ]
    costs = fit(samples)
    assert set(costs) == set(COSTS)
    assert all(0 < cost < math.inf for cost in costs.values())


@given(AMOUNTS, st.sampled_from(WORKS))
def test_more_work_never_costs_less(amounts: dict[str, int], name: str) -> None:
    more = {**amounts, name: amounts[name] + 1000}
    assert latency_ms(Features(**more), PRIOR) >= latency_ms(Features(**amounts), PRIOR)


@given(AMOUNTS)
def test_the_stream_from_dram_hides_behind_the_work_or_the_work_behind_it(amounts: dict[str, int]) -> None:
    features = Features(**amounts)
    ms = dict(zip(COSTS, (a * b for a, b in zip(works(features), PRIOR.values(), strict=True)), strict=True))
    total, rest = latency_ms(features, PRIOR), ms["depth"] + ms["fixed"]
    busy = sum(ms.values()) - ms["stream_bytes"] - rest
    assert max(busy, ms["stream_bytes"]) <= total - rest + 1e-9 * total  # the rest may be all but everything
    assert total <= sum(ms.values()) * (1 + 1e-9)


@pytest.mark.parametrize("latency", [0.0, -1.0, math.nan, math.inf])
def test_a_latency_that_is_no_time_is_refused(latency: float) -> None:
    samples = made(scaled(1.0))
    with pytest.raises(RecipeError, match="not a positive number"):
        fit([*samples, dataclasses.replace(samples[0], latency_ms=latency)])


def test_too_few_measurements_are_refused() -> None:
    with pytest.raises(RecipeError, match="3 measurements"):
        fit(made(scaled(1.0), count=3))


def test_the_prior_has_every_cost_and_an_interval_for_every_precision() -> None:
    assert tuple(PRIOR) == COSTS
    assert set(RESIDUAL90) == set(PRECISIONS)
    assert all(low < 1 < high for low, high in RESIDUAL90.values())
    assert NEVER_FITTED > 1
