"""Which jobs nothing beats: the Pareto front over accuracy, latency and size."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(frozen=True)
class Point:
    """What a job came to. Points of different metrics are not compared."""

    metric: str
    accuracy: float
    higher_is_better: bool
    latency_ms: float
    package_mb: float | None
    """Null where no package was made; sizes count among points of a metric if all of them have one."""


def front(points: Sequence[Point | None]) -> list[bool | None]:
    """For each point whether it is on the front: no other is as good in everything and better in something.

    Equal points stay together. None is not judged, nor is a point with a figure that is not finite.
    """
    judged = [index for index, point in enumerate(points) if point is not None and _is_finite(point)]
    verdicts: list[bool | None] = [None] * len(points)
    for metric in {_of(points[index]).metric for index in judged}:
        members = [index for index in judged if _of(points[index]).metric == metric]
        sized = all(_of(points[index]).package_mb is not None for index in members)
        costs = {index: _costs(_of(points[index]), sized=sized) for index in members}
        best = _minimal(costs.values())
        for index in members:
            verdicts[index] = costs[index] in best
    return verdicts


def _of(point: Point | None) -> Point:
    assert point is not None
    return point


def _is_finite(point: Point) -> bool:
    return all(map(math.isfinite, (point.accuracy, point.latency_ms, point.package_mb or 0.0)))


def _costs(point: Point, *, sized: bool) -> tuple[float, ...]:
    """Figures of which less is better."""
    accuracy = -point.accuracy if point.higher_is_better else point.accuracy
    return (accuracy, point.latency_ms, *((point.package_mb or 0.0,) if sized else ()))


def _minimal(costs: Iterable[tuple[float, ...]]) -> set[tuple[float, ...]]:
    """Those that no other one is at most equal to in all places. In sorted order, what beats one comes before it."""
    best: set[tuple[float, ...]] = set()
    for cost in sorted(set(costs)):
        if not any(all(a <= b for a, b in zip(other, cost, strict=True)) for other in best):
            best.add(cost)
    return best
