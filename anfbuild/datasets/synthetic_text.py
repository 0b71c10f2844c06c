"""Kind `synthetic_text`: lines of text on real photos, with the exact corners of each line as ground truth.

Each line is turned, seen a little from the side and coloured to be readable where it lands; the whole is blurred,
made noisy and saved as JPEG, as a phone's camera would. Photos are divided between calibration and evaluation.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image, ImageFilter, ImageFont, ImageStat

from anfbuild.datasets.images import load_image
from anfbuild.datasets.samples import Entry, write_index
from anfbuild.datasets.text_layer import MARGIN, Point, Projection, TextLine, bend, draw_line, rotated_corners
from anfbuild.datasets.words import WORDS
from anfbuild.errors import StepError
from anfbuild.tasks.geometry import convex_hull, intersection_area

T = TypeVar("T")

_LINES = (3, 12)
_LETTER = (16, 0.075)
"""Height of letters: pixels at the least, a share of the image's side at the most."""
_CONTRAST = 60
"""Least difference between the brightness of text and of what lies behind it, of 255."""
_RESTLESS = 40
"""Standard deviation of brightness from which no colour stands out."""
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
    photos = [Image.fromarray(load_image(path)) for path in _photos(assets, split)]
    fonts = _files(assets, "fonts")
    entries = []
    truths = {}
    for number in range(samples):
        key = f"{seed}/{split}/{number}".encode()
        draw = random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8]))
        image, quads, texts = _compose(draw, photos, fonts, size)
        file = f"{number:04d}.jpg"
        image.save(folder / file, quality=70 + _below(draw, 26), subsampling=2)
        entries.append(Entry(file.removesuffix(".jpg"), file))
        truths[entries[-1].name] = {"quads": quads, "texts": texts}
    write_index(folder, entries)
    return truths


def _files(assets: Path, group: str) -> list[Path]:
    folder = assets / group
    found = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    if not found:
        raise StepError(f"there are no {group} to make images from", remedy=f"List some under dataset.assets.{group}.")
    return found


def _photos(assets: Path, split: str) -> list[Path]:
    """Every second photo by name: of two kinds of a thing, such as `grass` and `gravel`, each split gets one."""
    ordered = _files(assets, "photos")
    if len(ordered) < 2:
        raise StepError("one photo cannot serve calibration and evaluation", remedy="List two or more.")
    return ordered[0::2] if split == "calibration" else ordered[1::2]


def _below(draw: random.Random, limit: int) -> int:
    """A whole number in 0..limit-1, from `random()` alone: the one method whose sequence Python guarantees."""
    return int(draw.random() * limit)


def _pick(draw: random.Random, choices: Sequence[T]) -> T:
    return choices[_below(draw, len(choices))]


def _between(draw: random.Random, low: float, high: float) -> float:
    return low + (high - low) * draw.random()


def _compose(
    draw: random.Random, photos: Sequence[Image.Image], fonts: Sequence[Path], size: int
) -> tuple[Image.Image, list[list[list[float]]], list[str]]:
    """One image with its quads and texts; at least one line always fits."""
    canvas = _background(draw, photos, size)
    taken: list[list[Point]] = []
    quads: list[list[list[float]]] = []
    texts: list[str] = []
    wanted = _LINES[0] + _below(draw, _LINES[1] - _LINES[0] + 1)
    while len(texts) < wanted:
        line = _line(draw, fonts, size)
        place = _place(draw, line, size, taken)
        if place is None:
            # A line that finds no room is one that the image does without; the first is tried until it fits.
            wanted -= 1 if texts else 0
            continue
        _paste(draw, canvas, line, place)
        project = Projection(line.mask.size, place)
        w, h, edge = *line.mask.size, MARGIN - _OUTSIDE
        box = ((edge, edge), (w - edge, edge), (w - edge, h - edge), (edge, h - edge))
        quads.append([[round(value, 1) for value in project(x, y)] for x, y in box])
        texts.append(line.text)
        taken.append(_grown(place, _SPACE))
    return _photographed(draw, canvas), quads, texts


def _background(draw: random.Random, photos: Sequence[Image.Image], size: int) -> Image.Image:
    """A square cut of a photo, 60–100 % of its short side, maybe mirrored."""
    photo = _pick(draw, photos)
    side = int(min(photo.size) * _between(draw, 0.6, 1.0))
    left, top = (_below(draw, edge - side + 1) for edge in photo.size)
    cut = photo.resize((size, size), Image.Resampling.BICUBIC, (left, top, left + side, top + side))
    return cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draw.random() < 0.5 else cut


def _line(draw: random.Random, fonts: Sequence[Path], size: int) -> TextLine:
    words = [
        str(1 + _below(draw, 99999)) if draw.random() < 0.2 else _pick(draw, WORDS) for _ in range(1 + _below(draw, 4))
    ]
    text = " ".join(words)
    style = draw.random()
    text = text.upper() if style < 0.2 else text.title() if style < 0.5 else text
    # The square of a uniform number: small text is more common than large text.
    height = _LETTER[0] + (max(size * _LETTER[1], _LETTER[0]) - _LETTER[0]) * draw.random() ** 2
    path = _pick(draw, fonts)
    try:
        # The basic layout: the one that every build of Pillow has.
        font = ImageFont.truetype(path, round(height), layout_engine=ImageFont.Layout.BASIC)
    except OSError as error:
        raise StepError(f"{path.name} is not a font that can be read: {error}") from error
    return draw_line(text, font)


def _place(draw: random.Random, line: TextLine, size: int, taken: Sequence[list[Point]]) -> list[Point] | None:
    """Corners of the line's mask, turned and seen a little from the side, clear of the lines in `taken`."""
    # Half-angle tangents of 8° and 35°: most signs are nearly level.
    limit = 0.07 if draw.random() < 0.6 else 0.315
    corners = rotated_corners(line.mask.size, _between(draw, -limit, limit))
    jitter = 0.06 * line.mask.size[1]
    corners = [(x + _between(draw, -jitter, jitter), y + _between(draw, -jitter, jitter)) for x, y in corners]
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


def _paste(draw: random.Random, canvas: Image.Image, line: TextLine, place: list[Point]) -> None:
    """Paint the line in a colour that stands out from what lies behind it.

    One line in four is on a plate, and each where the photo is so restless that no colour would stand out.
    """
    ink, corner = bend(line.mask, place)
    plate, _ = bend(Image.new("L", line.mask.size, 255), place)
    crop = canvas.crop((*corner, corner[0] + ink.width, corner[1] + ink.height))
    behind = ImageStat.Stat(crop.convert("L"), plate)
    colour = _colour(draw, 0, 256)
    if draw.random() < 0.25 or behind.stddev[0] > _RESTLESS:
        plate_colour = _colour(draw, 220, 256) if _brightness(colour) < 128 else _colour(draw, 0, 36)
        canvas.paste(plate_colour, corner, plate.point(lambda value: round(value * 0.85)))
    elif abs(_brightness(colour) - behind.mean[0]) < _CONTRAST + behind.stddev[0]:
        colour = (0, 0, 0) if behind.mean[0] > 127 else (255, 255, 255)
    opacity = _between(draw, 0.8, 1.0)
    canvas.paste(colour, corner, ink.point(lambda value: round(value * opacity)))


def _colour(draw: random.Random, low: int, past: int) -> tuple[int, int, int]:
    red, green, blue = (low + _below(draw, past - low) for _ in range(3))
    return red, green, blue


def _brightness(colour: tuple[int, int, int]) -> float:
    """ITU-R BT.601 luma, 0..255."""
    return (299 * colour[0] + 587 * colour[1] + 114 * colour[2]) / 1000


def _photographed(draw: random.Random, image: Image.Image) -> Image.Image:
    """Blur now and then, sensor noise always."""
    if draw.random() < 0.4:
        image = image.filter(ImageFilter.GaussianBlur(_between(draw, 0.4, 1.2)))
    deviation = _between(draw, 0.0, 5.0)
    pixels = np.asarray(image)
    # The sum of four bytes is close to normal (mean 510, deviation 147.8) and exact; the raw stream of PCG64 is fixed.
    raw = np.random.PCG64(_below(draw, 1 << 32)).random_raw((pixels.size + 1) // 2).astype("<u8").view(np.uint8)
    sums = raw[: 4 * pixels.size].reshape(4, *pixels.shape).sum(axis=0, dtype=np.uint16)
    noisy = pixels + (sums.astype(np.float32) - 510) * np.float32(deviation / 147.8)
    return Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
