"""Kind `photos`: cuts of a few pinned photos, mirrored, lighter or darker, as JPEG. There is no ground truth.

A group of assets whose name begins with `calibration` or `evaluation` gives its photos to that split alone. Cuts of few
photos are alike: they tell what quantization changes on them, not on the photos of others.
"""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

from PIL import Image

from anfbuild.datasets.images import load_image
from anfbuild.datasets.painting import between, generator
from anfbuild.datasets.samples import SPLITS, Entry, write_index
from anfbuild.errors import StepError

_SIDE = (0.7, 1.0)
"""Of the photo's short side."""
_GAIN = (0.7, 1.25)
_OFFSET = (-15.0, 15.0)
"""Grey levels of 255."""
_QUALITY = (70, 96)


def write_photos(assets: Path, split: str, samples: int, seed: int, size: int, folder: Path) -> None:
    """Write `samples` images of `size` × `size` pixels to `folder`, cut from the photos of `split` in turn.

    Raises StepError naming the group or photo: a split without photos, one photo in both, one that cannot be read.
    """
    photos = [Image.fromarray(load_image(path)) for path in _photos(assets)[split]]
    entries = []
    for number in range(samples):
        draw = generator(seed, split, number)
        image = _exposed(draw, _cut(draw, photos[number % len(photos)], size))
        file = f"{number:04d}.jpg"
        image.save(folder / file, quality=int(between(draw, *_QUALITY)), subsampling=2)
        entries.append(Entry(file.removesuffix(".jpg"), file))
    write_index(folder, entries)


def _photos(assets: Path) -> dict[str, list[Path]]:
    """The photos of each split, in the order of their groups and names."""
    found = {}
    for split in SPLITS:
        groups = sorted(path for path in assets.iterdir() if path.is_dir() and path.name.startswith(split))
        found[split] = [path for group in groups for path in sorted(group.iterdir())]
        if not found[split]:
            raise StepError(
                f"there are no photos for {split}",
                where="dataset.assets",
                remedy=f"List some in a group whose name begins with {split}.",
            )
    of_calibration = {_digest(path): path for path in found["calibration"]}
    for path in found["evaluation"]:
        if _digest(path) in of_calibration:
            raise StepError(
                f"{path.name} of {path.parent.name} is in {of_calibration[_digest(path)].parent.name} too",
                where="dataset.assets",
                remedy="Take it out of one: a photo that calibrated a model says nothing about its accuracy.",
            )
    return found


def _digest(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()


def _cut(draw: random.Random, photo: Image.Image, size: int) -> Image.Image:
    """A square of the photo, every second one mirrored."""
    side = int(min(photo.size) * between(draw, *_SIDE))
    left, top = (int(draw.random() * (edge - side + 1)) for edge in photo.size)
    cut = photo.resize((size, size), Image.Resampling.BICUBIC, (left, top, left + side, top + side))
    return cut.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if draw.random() < 0.5 else cut


def _exposed(draw: random.Random, image: Image.Image) -> Image.Image:
    gain, offset = between(draw, *_GAIN), between(draw, *_OFFSET)
    levels = [min(max(int(level * gain + offset + 0.5), 0), 255) for level in range(256)]
    return image.point(levels * 3)
