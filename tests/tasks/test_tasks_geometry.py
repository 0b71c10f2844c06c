from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.tasks.geometry import area, convex_hull, intersection_area, iou, smallest_rectangle

UNIT = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]
coordinate = st.integers(-50, 50)
points = st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=30)


def shifted(polygon: list[tuple[float, float]], dx: float, dy: float) -> list[tuple[float, float]]:
    return [(x + dx, y + dy) for x, y in polygon]


def test_hull_leaves_out_inner_points_and_points_on_edges() -> None:
    assert convex_hull([(0, 0), (2, 0), (4, 0), (4, 4), (0, 4), (1, 1), (0, 0)]) == [(0, 0), (4, 0), (4, 4), (0, 4)]


@given(points)
def test_hull_contains_every_point(cloud: list[tuple[int, int]]) -> None:
    hull = convex_hull(cloud)
    for x, y in cloud:
        assert area(convex_hull([*hull, (x, y)])) == area(hull)


@settings(max_examples=60)
@given(st.floats(-3.2, 3.2), st.floats(3, 60), st.floats(1, 3), st.lists(st.tuples(st.floats(-1, 1), st.floats(-1, 1))))
def test_smallest_rectangle_of_a_rectangle_is_itself(
    angle: float, width: float, height: float, inner: list[tuple[float, float]]
) -> None:
    def turned(u: float, v: float) -> tuple[float, float]:
        x, y = u * width / 2, v * height / 2
        return (7 + x * math.cos(angle) - y * math.sin(angle), 3 + x * math.sin(angle) + y * math.cos(angle))

    corners = [turned(u, v) for u, v in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    found = smallest_rectangle(corners + [turned(u, v) for u, v in inner])
    assert found.short_side == pytest.approx(min(width, height), rel=1e-6)
    assert iou(found.corners(), corners) == pytest.approx(1, abs=1e-6)


@given(points)
def test_smallest_rectangle_holds_all_points_and_is_no_larger_than_the_upright_one(
    cloud: list[tuple[int, int]],
) -> None:
    rectangle = smallest_rectangle(cloud)
    (cx, cy), (ux, uy), (a, b) = rectangle.centre, rectangle.axis, rectangle.half
    for x, y in cloud:
        assert abs((x - cx) * ux + (y - cy) * uy) <= a + 1e-6
        assert abs((y - cy) * ux - (x - cx) * uy) <= b + 1e-6
    xs, ys = zip(*cloud, strict=True)
    assert 4 * a * b <= (max(xs) - min(xs)) * (max(ys) - min(ys)) + 1e-6


def test_grown_rectangle_and_the_order_of_its_corners() -> None:
    corners = smallest_rectangle([(10, 10), (30, 10), (30, 20), (10, 20)]).grown(2).corners()
    assert corners == [(8, 8), (32, 8), (32, 22), (8, 22)]


@pytest.mark.parametrize(
    ("dx", "dy", "shared"), [(0, 0, 1), (0.5, 0, 0.5), (0.5, 0.5, 0.25), (1, 0, 0), (3, 3, 0), (-0.25, 0, 0.75)]
)
def test_intersection_of_squares(dx: float, dy: float, shared: float) -> None:
    assert intersection_area(convex_hull(UNIT), convex_hull(shifted(UNIT, dx, dy))) == pytest.approx(shared)


def test_intersection_of_a_square_and_the_same_turned_by_45_degrees() -> None:
    # A regular octagon with an inradius of 1/2: area 2 (sqrt(2) - 1) of the unit square's 1.
    r = math.sqrt(0.5)
    diamond = convex_hull([(0.5 + r, 0.5), (0.5, 0.5 + r), (0.5 - r, 0.5), (0.5, 0.5 - r)])
    assert intersection_area(convex_hull(UNIT), diamond) == pytest.approx(2 * (math.sqrt(2) - 1))


def test_iou_does_not_depend_on_the_order_of_corners() -> None:
    crossed = [UNIT[0], UNIT[2], UNIT[1], UNIT[3]]
    assert iou(UNIT, shifted(crossed, 0.5, 0)) == pytest.approx(1 / 3)
    assert iou(UNIT[::-1], UNIT) == 1
    assert iou(UNIT, [(0, 0), (1, 1)]) == 0


@given(points, points)
def test_iou_is_symmetric_and_a_fraction(a: list[tuple[int, int]], b: list[tuple[int, int]]) -> None:
    assert iou(a, b) == pytest.approx(iou(b, a), abs=1e-9)
    assert 0 <= iou(a, b) <= 1 + 1e-9
