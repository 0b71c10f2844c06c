"""Kind `synthetic_text`: lines of text on real photos, with the exact corners of each line as ground truth.

Each line is turned, seen a little from the side and coloured to be readable where it lands; the whole is blurred,
made noisy and saved as JPEG, as a phone's camera would. Photos are divided between calibration and evaluation.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from anfbuild.datasets.painting import below, between, font, paste, photographed, pick, words, write_images
from anfbuild.datasets.text_layer import MARGIN, Point, Projection, TextLine, draw_line, rotated_corners
from anfbuild.tasks.geometry import convex_hull, intersection_area

_LINES = (3, 12)
_LETTER = (16, 0.075)
"""Height of letters: pixels at the least, a share of the image's side at the most."""
_TRIES = 15
_OUTSIDE = 2
"""Pixels between the ink and its box in the truth: people who mark text for training draw just outside of it."""
_SPACE = 10
"""Pixels between the boxes of two lines, and between a box and the edge."""


def write_synthetic_text(
    assets: Path, split: str, samples: int, seed: int, size: int, folder: Path
) -> dict[str, dict[str, Any]]:
    """Write `samples` images of `size` × `size` pixels; returns {name: {"quads": [[[x, y] * 4]…], "texts": […]}}.

    Corners go clockwise from the top left of the line, in pixels to one decimal.
    Raises StepError where `assets` lacks photos for both splits or fonts, or one cannot be read.
    """

    def compose(
        draw: random.Random, photos: Sequence[Image.Image], fonts: Sequence[Path]
    ) -> tuple[Image.Image, dict[str, Any]]:
        image, quads, texts = _compose(draw, photos, fonts, size)
        return image, {"quads": quads, "texts": texts}

    return write_images(compose, assets, split, samples, seed, folder)


def _compose(
    draw: random.Random, photos: Sequence[Image.Image], fonts: Sequence[Path], size: int
) -> tuple[Image.Image, list[list[list[float]]], list[str]]:
    """One image with its quads and texts; at least one line always fits."""
    canvas = _background(draw, photos, size)
    taken: list[list[Point]] = []
    quads: list[list[list[float]]] = []
    texts: list[str] = []
    wanted = _LINES[0] + below(draw, _LINES[1] - _LINES[0] + 1)
    while len(texts) < wanted:
        line = _line(draw, fonts, size)
        place = _place(draw, line, size, taken)
        if place is None:
            # A line that finds no room is one that the image does without; the first is tried until it fits.
            wanted -= 1 if texts else 0
            continue
        paste(draw, canvas, line, place)
        project = Projection(line.mask.size, place)
        w, h, edge = *line.mask.size, MARGIN - _OUTSIDE
        box = ((edge, edge), (w - edge, edge), (w - edge, h - edge), (edge, h - edge))
        quads.append([[round(value, 1) for value in project(x, y)] for x, y in box])
        texts.append(line.text)
        taken.append(_grown(place, _SPACE))
    return photographed(draw, canvas), quads, texts


def _background(draw: random.Random, photos: Sequence[Image.Image], size: int) -> Image.Image:
    """A square cut of a photo, 60–100 % of its short side, maybe mirrored."""
    photo = pick(draw, photos)
    side = int(min(photo.size) * between(draw, 0.6, 1.0))
    left, top = (below(draw, edge - side + 1) for edge in photo.size)
    cut = photo.resize((size, size), Image.Resampling.BICUBIC, (left, top, left + side, top + side))
    return cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draw.random() < 0.5 else cut


def _line(draw: random.Random, fonts: Sequence[Path], size: int) -> TextLine:
    text = words(draw, 1 + below(draw, 4))
    # The square of a uniform number: small text is more common than large text.
    height = _LETTER[0] + (max(size * _LETTER[1], _LETTER[0]) - _LETTER[0]) * draw.random() ** 2
    return draw_line(text, font(pick(draw, fonts), round(height)))


def _place(draw: random.Random, line: TextLine, size: int, taken: Sequence[list[Point]]) -> list[Point] | None:
    """Corners of the line's mask, turned and seen a little from the side, clear of the lines in `taken`."""
    # Half-angle tangents of 8° and 35°: most signs are nearly level.
    limit = 0.07 if draw.random() < 0.6 else 0.315
    corners = rotated_corners(line.mask.size, between(draw, -limit, limit))
    jitter = 0.06 * line.mask.size[1]
    corners = [(x + between(draw, -jitter, jitter), y + between(draw, -jitter, jitter)) for x, y in corners]
    low = [min(corner[axis] for corner in corners) for axis in (0, 1)]
    room = [size - 2 * _SPACE - max(corner[axis] for corner in corners) + low[axis] for axis in (0, 1)]
    if min(room) < 0:
        return None
    for _ in range(_TRIES):
        x, y = (_SPACE - low[axis] + room[axis] * draw.random() for axis in (0, 1))
        place = [(cx + x, cy + y) for cx, cy in corners]
        hull = convex_hull(place)
        if not any(intersection_area(hull, other) for other in taken):
            return place
    return None


def _grown(quad: list[Point], distance: float) -> list[Point]:
    """The hull of a square of half-side `distance` moved along `quad`."""
    return convex_hull(
        (x + dx, y + dy) for x, y in quad for dx in (-distance, distance) for dy in (-distance, distance)
    )
