"""One line of text bent into place: where its corners go, and its coverage of each pixel there.

Only additions, multiplications and divisions of IEEE doubles decide where things go, so that every machine agrees.
"""

from __future__ import annotations

import dataclasses

from PIL import Image, ImageDraw, ImageFont

Point = tuple[float, float]

MARGIN = 4
"""Pixels around the ink, so that blurred edges are not cut."""


@dataclasses.dataclass(frozen=True)
class TextLine:
    """A straight, upright line of text, white on black, before it is bent."""

    text: str
    mask: Image.Image
    """Mode L: the coverage of the ink, MARGIN pixels of nothing around it."""


def draw_line(text: str, font: ImageFont.FreeTypeFont) -> TextLine:
    """Draw `text`; the mask fits its ink."""
    left, top, right, bottom = (int(edge) for edge in font.getbbox(text))
    mask = Image.new("L", (right - left + 2 * MARGIN, bottom - top + 2 * MARGIN))
    ImageDraw.Draw(mask).text((MARGIN - left, MARGIN - top), text, fill=255, font=font)
    return TextLine(text, mask)


def rotated_corners(size: tuple[int, int], half_tangent: float) -> list[Point]:
    """Corners of a rectangle around the origin, turned by the angle whose half has this tangent (so no sine)."""
    t = half_tangent
    cosine, sine = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    w, h = size[0] / 2, size[1] / 2
    return [(x * cosine - y * sine, x * sine + y * cosine) for x, y in ((-w, -h), (w, -h), (w, h), (-w, h))]


class Projection:
    """The projective map of the rectangle (0, 0)–`size` onto a quadrilateral (Heckbert, 1989, section 2.2.3)."""

    def __init__(self, size: tuple[int, int], quad: list[Point]) -> None:
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = quad
        dx1, dx2, sx = x1 - x2, x3 - x2, x0 - x1 + x2 - x3
        dy1, dy2, sy = y1 - y2, y3 - y2, y0 - y1 + y2 - y3
        det = dx1 * dy2 - dx2 * dy1
        g, h = (sx * dy2 - dx2 * sy) / det, (dx1 * sy - sx * dy1) / det
        w, t = size
        self.rows = (
            ((x1 - x0 + g * x1) / w, (x3 - x0 + h * x3) / t, x0),
            ((y1 - y0 + g * y1) / w, (y3 - y0 + h * y3) / t, y0),
            (g / w, h / t, 1.0),
        )

    def __call__(self, x: float, y: float) -> Point:
        """Where a point of the rectangle lands."""
        u, v, w = (a * x + b * y + c for a, b, c in self.rows)
        return u / w, v / w

    def inverse_coefficients(self) -> tuple[float, ...]:
        """The eight coefficients of the inverse map, as Pillow's PERSPECTIVE transform takes them."""
        (a, b, c), (d, e, f), (g, h, i) = self.rows
        adjugate = (
            *(e * i - f * h, c * h - b * i, b * f - c * e),
            *(f * g - d * i, a * i - c * g, c * d - a * f),
            *(d * h - e * g, b * g - a * h, a * e - b * d),
        )
        return tuple(value / adjugate[8] for value in adjugate[:8])


def bend(image: Image.Image, quad: list[Point]) -> tuple[Image.Image, tuple[int, int]]:
    """`image` (mode L) with its corners at `quad`, on the smallest upright canvas, and that canvas's place."""
    left, top = (int(min(point[axis] for point in quad)) - 1 for axis in (0, 1))
    right, bottom = (int(max(point[axis] for point in quad)) + 2 for axis in (0, 1))
    local = Projection(image.size, [(x - left, y - top) for x, y in quad])
    bent = image.transform(
        (right - left, bottom - top),
        Image.Transform.PERSPECTIVE,
        local.inverse_coefficients(),
        Image.Resampling.BILINEAR,
    )
    return bent, (left, top)
