"""Latency from what the compiler made of a model: work on the longest chain of its run list times what that costs.

    latency in burst = sum over j of (work j × cost j) + fixed time

The works are `anfbuild.qnn.features`; the costs belong to a chip and are fitted (`anfbuild.simulator.fit`).
"""

from __future__ import annotations

from collections.abc import Mapping

from anfbuild.qnn.features import Features, path_columns

_PREFIX = "path_"
WORKS = tuple(name.removeprefix(_PREFIX) for name in path_columns())
COSTS = (*WORKS, "fixed")
"""One cost each: ms a unit of the work of that name, and ms of an inference that does nothing."""

RESIDUAL90: dict[str, tuple[float, float]] = {"w8a8": (0.54, 1.80), "w8a16": (0.33, 1.81), "float": (0.61, 1.82)}
"""Measured over predicted time, 5th and 95th percentile, each family predicted by a fit that had not seen it."""
NEVER_FITTED = 1.25
"""How much wider the interval is on a chip whose costs are another one's: the error of that one factor."""


def works(features: Features) -> list[float]:
    """The works that `COSTS` are costs of, in that order; the last is one inference."""
    values = features.to_json()
    return [*(float(values[f"{_PREFIX}{name}"]) for name in WORKS), 1.0]


def latency_ms(features: Features, costs: Mapping[str, float]) -> float:
    """Latency in burst. More work never makes it less, where no cost is negative."""
    return sum(work * costs[name] for name, work in zip(COSTS, works(features), strict=True))


def shares(features: Features, costs: Mapping[str, float]) -> dict[str, float]:
    """Milliseconds of each work, in the order of `COSTS`."""
    return {name: work * costs[name] for name, work in zip(COSTS, works(features), strict=True)}
