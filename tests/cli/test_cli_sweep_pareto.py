from __future__ import annotations

import math
from collections.abc import Sequence

import hypothesis.strategies as st
from hypothesis import given

from anfbuild.cli.sweep.pareto import Point, front

few = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@st.composite
def points(draw: st.DrawFn) -> list[Point | None]:
    better = {name: draw(st.booleans()) for name in "ab"}

    def one() -> Point | None:
        metric = draw(st.sampled_from("ab"))
        size = draw(st.sampled_from([1.0, 2.0, None] if metric == "a" else [1.0, 2.0]))
        accuracy = draw(st.one_of(few, st.just(math.nan)))
        return draw(st.one_of(st.none(), st.just(Point(metric, accuracy, better[metric], draw(few), size))))

    return [one() for _ in range(draw(st.integers(0, 9)))]


def by_definition(points: Sequence[Point | None]) -> list[bool | None]:
    judged = [point for point in points if point is not None and not math.isnan(point.accuracy)]

    def figures(point: Point) -> list[float]:
        sizes = [other.package_mb for other in judged if other.metric == point.metric]
        sign = -1 if point.higher_is_better else 1
        return [sign * point.accuracy, point.latency_ms, 0.0 if None in sizes else point.package_mb or 0.0]

    def beaten(point: Point) -> bool:
        rivals = [figures(other) for other in judged if other.metric == point.metric]
        own = figures(point)
        return any(all(a <= b for a, b in zip(rival, own, strict=True)) and rival != own for rival in rivals)

    return [None if point not in judged or point is None else not beaten(point) for point in points]


@given(points())
def test_the_front_is_what_nothing_beats(given: list[Point | None]) -> None:
    assert front(given) == by_definition(given)


def test_equal_points_stay_together_and_what_is_worse_goes() -> None:
    best, worse = Point("f1", 0.9, True, 2.0, 3.0), Point("f1", 0.9, True, 2.0, 3.1)
    assert front([best, best, worse, None]) == [True, True, False, None]
    assert front([Point("error", 0.1, False, 2.0, 1.0), Point("error", 0.2, False, 2.0, 1.0)]) == [True, False]
