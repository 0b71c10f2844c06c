"""What made images of text are put together from: photos and fonts, drawn numbers, words, ink, a camera's faults.

Only `random()` of a seeded generator and IEEE operations decide, so that every machine makes the same bytes.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from PIL import Image, ImageFilter, ImageFont, ImageStat

from anfbuild.datasets.images import load_image
from anfbuild.datasets.samples import Entry, write_index
from anfbuild.datasets.text_layer import Point, TextLine, bend
from anfbuild.datasets.words import WORDS
from anfbuild.errors import StepError

T = TypeVar("T")

Compose = Callable[[random.Random, Sequence[Image.Image], Sequence[Path]], tuple[Image.Image, dict[str, Any]]]
"""Makes an image and its ground truth of drawn numbers, photos and the files of fonts."""

_CONTRAST = 60
"""Least difference between the brightness of text and of what lies behind it, of 255."""
_RESTLESS = 40
"""Standard deviation of brightness from which no colour stands out."""


def write_images(
    compose: Compose, assets: Path, split: str, samples: int, seed: int, folder: Path
) -> dict[str, dict[str, Any]]:
    """Write `samples` images that `compose` makes of the photos of `split` and the fonts in `assets`, and their index.

    Returns their ground truth by name. Raises StepError where `assets` lacks photos for both splits or fonts, or one
    cannot be read.
    """
    photos = load_photos(assets, split)
    fonts = list_files(assets, "fonts")
    entries = []
    truths = {}
    for number in range(samples):
        draw = generator(seed, split, number)
        image, truth = compose(draw, photos, fonts)
        entry = Entry(f"{number:04d}", f"{number:04d}.jpg")
        image.save(folder / entry.file, quality=70 + below(draw, 26), subsampling=2)
        entries.append(entry)
        truths[entry.name] = truth
    write_index(folder, entries)
    return truths


def generator(seed: int, split: str, number: int) -> random.Random:
    """The drawn numbers of one sample, whatever others are made."""
    key = f"{seed}/{split}/{number}".encode()
    return random.Random(int.from_bytes(hashlib.sha256(key).digest()[:8]))


def load_photos(assets: Path, split: str) -> list[Image.Image]:
    """The photos that are `split`'s: every second one by name. Of two kinds of a thing, such as `grass` and `gravel`,
    each split gets one. Raises StepError where there are not two, or one cannot be read."""
    ordered = list_files(assets, "photos")
    if len(ordered) < 2:
        raise StepError("one photo cannot serve calibration and evaluation", remedy="List two or more.")
    mine = ordered[0::2] if split == "calibration" else ordered[1::2]
    return [Image.fromarray(load_image(path)) for path in mine]


def list_files(assets: Path, group: str) -> list[Path]:
    """The files of a group in the order of their names; StepError where there are none."""
    folder = assets / group
    found = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    if not found:
        raise StepError(f"there are no {group} to make images from", remedy=f"List some under dataset.assets.{group}.")
    return found


def below(draw: random.Random, limit: int) -> int:
    """A whole number in 0..limit-1, from `random()` alone: the one method whose sequence Python guarantees."""
    return int(draw.random() * limit)


def pick(draw: random.Random, choices: Sequence[T]) -> T:
    """One of `choices`."""
    return choices[below(draw, len(choices))]


def between(draw: random.Random, low: float, high: float) -> float:
    """A number in [low, high)."""
    return low + (high - low) * draw.random()


def words(draw: random.Random, count: int) -> str:
    """Words and, one in five, numbers, as they stand on a sign: one line in five in capitals, some in title case."""
    text = " ".join(str(1 + below(draw, 99999)) if draw.random() < 0.2 else pick(draw, WORDS) for _ in range(count))
    style = draw.random()
    return text.upper() if style < 0.2 else text.title() if style < 0.5 else text


def font(path: Path, height: int) -> ImageFont.FreeTypeFont:
    """The font in `path` at `height` pixels. StepError where it cannot be read."""
    try:
        # The basic layout: the one that every build of Pillow has.
        return ImageFont.truetype(path, height, layout_engine=ImageFont.Layout.BASIC)
    except OSError as error:
        raise StepError(f"{path.name} is not a font that can be read: {error}") from error


def paste(draw: random.Random, canvas: Image.Image, line: TextLine, place: list[Point]) -> None:
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
    opacity = between(draw, 0.8, 1.0)
    canvas.paste(colour, corner, ink.point(lambda value: round(value * opacity)))


def _colour(draw: random.Random, low: int, past: int) -> tuple[int, int, int]:
    red, green, blue = (low + below(draw, past - low) for _ in range(3))
    return red, green, blue


def _brightness(colour: tuple[int, int, int]) -> float:
    """ITU-R BT.601 luma, 0..255."""
    return (299 * colour[0] + 587 * colour[1] + 114 * colour[2]) / 1000


def photographed(draw: random.Random, image: Image.Image) -> Image.Image:
    """Blur now and then, sensor noise always."""
    if draw.random() < 0.4:
        image = image.filter(ImageFilter.GaussianBlur(between(draw, 0.4, 1.2)))
    deviation = between(draw, 0.0, 5.0)
    pixels = np.asarray(image)
    # The sum of four bytes is close to normal (mean 510, deviation 147.8) and exact; the raw stream of PCG64 is fixed.
    raw = np.random.PCG64(below(draw, 1 << 32)).random_raw((pixels.size + 1) // 2).astype("<u8").view(np.uint8)
    sums = raw[: 4 * pixels.size].reshape(4, *pixels.shape).sum(axis=0, dtype=np.uint16)
    noisy = pixels + (sums.astype(np.float32) - 510) * np.float32(deviation / 147.8)
    return Image.fromarray(np.clip(np.rint(noisy), 0, 255).astype(np.uint8))
