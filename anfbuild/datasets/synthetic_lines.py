"""Kind `synthetic_lines`: one line of text an image, as a text detector cuts it out of a photo, with what it says.

The lines are those of `synthetic_text`, nearly level, with a little of the photo around them.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from anfbuild.datasets.painting import below, between, font, paste, photographed, pick, words, write_images
from anfbuild.datasets.text_layer import MARGIN, TextLine, draw_line, rotated_corners

_WORDS = 3
_LETTER = (0.35, 0.75)
"""Height of letters, a share of `size`: their line is about a third higher."""
_ASPECT = 6.5
"""Width over height at the most: recognisers read 320 × 48 pixels, and squeeze what is longer."""
_TURN = 0.02
"""Half-angle tangent of 2.3°: what a detector's box leaves of a line's slope."""
_JITTER = 0.04
_SPACE = (0.0, 0.15)
"""Photo around the line, a share of its height."""


def write_synthetic_lines(
    assets: Path, split: str, samples: int, seed: int, size: int, folder: Path
) -> dict[str, dict[str, Any]]:
    """Write `samples` images of up to about `size` pixels' height; returns {name: {"text": …}}.

    Raises StepError where `assets` lacks photos for both splits or fonts, or one cannot be read.
    """

    def compose(
        draw: random.Random, photos: Sequence[Image.Image], fonts: Sequence[Path]
    ) -> tuple[Image.Image, dict[str, Any]]:
        line = _line(draw, fonts, size)
        return _compose(draw, photos, line), {"text": line.text}

    return write_images(compose, assets, split, samples, seed, folder)


def _line(draw: random.Random, fonts: Sequence[Path], size: int) -> TextLine:
    """One to three words that are not too long together: others are drawn until they fit."""
    height = round(size * between(draw, *_LETTER))
    chosen = font(pick(draw, fonts), height)
    while True:
        line = draw_line(words(draw, 1 + below(draw, _WORDS)), chosen)
        if line.mask.width <= _ASPECT * line.mask.height:
            return line


def _compose(draw: random.Random, photos: Sequence[Image.Image], line: TextLine) -> Image.Image:
    """The line on a cut of a photo that is as large as it needs."""
    height = line.mask.height
    jitter = _JITTER * height
    corners = rotated_corners(line.mask.size, between(draw, -_TURN, _TURN))
    corners = [(x + between(draw, -jitter, jitter), y + between(draw, -jitter, jitter)) for x, y in corners]
    space = [between(draw, *_SPACE) * height - MARGIN / 2 for _ in range(4)]
    left, top = (min(corner[axis] for corner in corners) - space[axis] for axis in (0, 1))
    right, bottom = (max(corner[axis] for corner in corners) + space[axis + 2] for axis in (0, 1))
    canvas = _background(draw, photos, (int(right - left) + 1, int(bottom - top) + 1))
    paste(draw, canvas, line, [(x - left, y - top) for x, y in corners])
    return photographed(draw, canvas)


def _background(draw: random.Random, photos: Sequence[Image.Image], size: tuple[int, int]) -> Image.Image:
    """A cut of a photo at its own scale, or of a photo made larger where it is too small, maybe mirrored."""
    photo = pick(draw, photos)
    scale = max(1.0, *(wanted / edge for wanted, edge in zip(size, photo.size, strict=True)))
    cut = [min(edge, wanted / scale) for wanted, edge in zip(size, photo.size, strict=True)]
    left, top = ((edge - part) * draw.random() for edge, part in zip(photo.size, cut, strict=True))
    background = photo.resize(size, Image.Resampling.BICUBIC, (left, top, left + cut[0], top + cut[1]))
    return background.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draw.random() < 0.5 else background
