"""Plane geometry of text boxes: hulls, smallest rectangles, overlaps. Points are (x, y) in pixels, y down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

Point = tuple[float, float]
Polygon = Sequence[Sequence[float]]


def convex_hull(points: Iterable[Sequence[float]]) -> list[Point]:
    """The corners of the hull, without points on its edges, turning from +x to +y (Andrew's monotone chain)."""
    ordered = sorted({(float(x), float(y)) for x, y in points})
    if len(ordered) < 3:
        return ordered
    return _half_hull(ordered)[:-1] + _half_hull(ordered[::-1])[:-1]


def _half_hull(ordered: list[Point]) -> list[Point]:
    chain: list[Point] = []
    for point in ordered:
        while len(chain) > 1 and _cross(chain[-2], chain[-1], point) <= 0:
            chain.pop()
        chain.append(point)
    return chain


def _cross(o: Sequence[float], a: Sequence[float], b: Sequence[float]) -> float:
    """Twice the signed area of the triangle; positive when o, a, b turn from +x to +y."""
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def area(polygon: Polygon) -> float:
    """Area of a simple polygon (shoelace formula), 0 for fewer than three points."""
    return abs(sum(_cross((0.0, 0.0), a, b) for a, b in zip(polygon, [*polygon[1:], *polygon[:1]], strict=True))) / 2


class Rectangle:
    """A rotated rectangle: centre, unit vector along its first side, half of each side."""

    def __init__(self, centre: Point, axis: Point, half: Point) -> None:
        self.centre, self.axis, self.half = centre, axis, half

    @property
    def short_side(self) -> float:
        """Length of the shorter side."""
        return 2 * min(self.half)

    def grown(self, distance: float) -> Rectangle:
        """The smallest rectangle around this one when each side moves out by `distance`."""
        return Rectangle(self.centre, self.axis, (self.half[0] + distance, self.half[1] + distance))

    def corners(self) -> list[Point]:
        """Clockwise on the screen, from the corner with the smallest x + y."""
        (cx, cy), (ux, uy), (a, b) = self.centre, self.axis, self.half
        corners = [
            (cx + s * a * ux - t * b * uy, cy + s * a * uy + t * b * ux)
            for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))
        ]
        first = min(range(4), key=lambda i: corners[i][0] + corners[i][1])
        return corners[first:] + corners[:first]


def smallest_rectangle(points: Iterable[Sequence[float]]) -> Rectangle:
    """The rectangle of the smallest area around at least one point.

    One of its sides lies on an edge of the hull (Freeman and Shapira, 1975), so the edges are tried in turn.
    """
    hull = convex_hull(points)
    corners = np.array(hull)
    edges = np.roll(corners, -1, axis=0) - corners
    lengths = np.sqrt((edges * edges).sum(axis=1))
    axes = edges[lengths > 0] / lengths[lengths > 0, None] if len(hull) > 1 else np.array([[1.0, 0.0]])
    across = np.stack([-axes[:, 1], axes[:, 0]], axis=1)
    # (axes, hull points): elementwise, as a matrix product may round differently from machine to machine.
    u = axes[:, :1] * corners[:, 0] + axes[:, 1:] * corners[:, 1]
    v = across[:, :1] * corners[:, 0] + across[:, 1:] * corners[:, 1]
    low = np.stack([u.min(axis=1), v.min(axis=1)])
    high = np.stack([u.max(axis=1), v.max(axis=1)])
    best = int(np.argmin((high - low).prod(axis=0)))
    (mu, mv), (hu, hv) = (high + low)[:, best] / 2, (high - low)[:, best] / 2
    (ux, uy), (vx, vy) = axes[best], across[best]
    centre = (float(mu * ux + mv * vx), float(mu * uy + mv * vy))
    return Rectangle(centre, (float(ux), float(uy)), (float(hu), float(hv)))


def intersection_area(a: Sequence[Point], b: Sequence[Point]) -> float:
    """Area shared by two convex polygons as `convex_hull` gives them (Sutherland and Hodgman, 1974)."""
    if _apart(a, b):
        return 0.0
    kept = list(a)
    for start, end in zip(b, [*b[1:], b[0]], strict=True):
        kept = _cut(kept, start, end)
        if len(kept) < 3:
            return 0.0
    return area(kept)


def _apart(a: Sequence[Point], b: Sequence[Point]) -> bool:
    """Whether the upright boxes around both do not even touch."""
    if len(a) < 3 or len(b) < 3:
        return True
    return any(
        max(p[axis] for p in a) <= min(p[axis] for p in b) or max(p[axis] for p in b) <= min(p[axis] for p in a)
        for axis in (0, 1)
    )


def _cut(polygon: list[Point], start: Point, end: Point) -> list[Point]:
    """The part of `polygon` on the inner side of the line from `start` to `end`."""
    kept: list[Point] = []
    sides = [_cross(start, end, point) for point in polygon]
    for i, point in enumerate(polygon):
        before, previous = sides[i - 1], polygon[i - 1]
        if (before < 0) != (sides[i] < 0):
            t = before / (before - sides[i])
            kept.append((previous[0] + t * (point[0] - previous[0]), previous[1] + t * (point[1] - previous[1])))
        if sides[i] >= 0:
            kept.append(point)
    return kept


def iou(a: Polygon, b: Polygon) -> float:
    """Intersection over union of the hulls of `a` and `b`, 0 where either has no area."""
    first, second = convex_hull(a), convex_hull(b)
    shared = intersection_area(first, second)
    union = area(first) + area(second) - shared
    return shared / union if shared and math.isfinite(union) else 0.0
