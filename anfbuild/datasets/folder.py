"""Kind `folder`: a user's own images, with `truth.json` beside them where there is ground truth.

With subfolders `calibration/` and `evaluation/` each split comes from its own; without, every third image, in the order
of the digests of the images' contents, is kept for evaluation. The order by digest takes a mixture where names would
take the first minute of a film, puts copies of an image on one side, and does not depend on names or dates.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from anfbuild.datasets.images import EXTENSIONS, decode_image
from anfbuild.datasets.samples import SPLITS, Entry, write_index
from anfbuild.errors import StepError

TRUTH = "truth.json"

_EVALUATION_EVERY = 3
_WRITE_TRUTH = 'Write {"FILE": {...}, ...} in JSON and UTF-8, with what the task wants of a sample in the inner braces.'


def write_folder(path: Path, split: str, samples: int, folder: Path) -> dict[str, dict[str, Any]]:
    """Copy `samples` images of `split` from `path` to `folder`, each checked to be readable. Returns their truth.

    `truth.json`: {file name: {…}}, the ground truth in the words of the task; without the file there is none. Raises
    StepError naming the file or folder: missing, an unreadable image, too few images, an image that is in both
    subfolders, a truth that is no JSON, names no image or lies beside the subfolders.
    """
    source, images = _images_of_split(path, split)
    if len(images) < samples:
        raise StepError(
            f"{source} has {len(images)} different images for {split}, {samples} wanted",
            remedy="Add images or ask for fewer samples. Without calibration/ and evaluation/ subfolders, two thirds "
            "of a folder's images are for calibration and one third for evaluation.",
        )
    if source != path and (path / TRUTH).exists():
        raise StepError(
            f"the ground truth lies beside {source.name}/, not in it",
            where=str(path / TRUTH),
            remedy="Move it to evaluation/, beside the images that it is about.",
        )
    truth = _truth(source) if (source / TRUTH).exists() else None
    entries = []
    for number, image in enumerate(images[:samples]):
        content = image.read_bytes()
        decode_image(content, image)
        file = f"{number:04d}{image.suffix.lower()}"
        (folder / file).write_bytes(content)
        entries.append(Entry(image.name, file))
    write_index(folder, entries)
    return {} if truth is None else {entry.name: truth.get(entry.name, {}) for entry in entries}


def _images_of_split(path: Path, split: str) -> tuple[Path, list[Path]]:
    """The folder that the split comes from, and its distinct images in order."""
    if not path.is_dir():
        raise StepError(f"{path} is not a folder", where="dataset.path", remedy="Name a folder with images.")
    divided = [name for name in SPLITS if (path / name).is_dir()]
    if not divided:
        ordered = list(_by_digest(path).values())
        return path, [
            image
            for rank, image in enumerate(ordered)
            if (rank % _EVALUATION_EVERY == _EVALUATION_EVERY - 1) == (split == "evaluation")
        ]
    if len(divided) < len(SPLITS):
        raise StepError(f"{path} has {divided[0]}/ alone", remedy=f"Make both of {', '.join(SPLITS)}, or neither.")
    calibration, evaluation = (_by_digest(path / name) for name in SPLITS)
    for digest in sorted(calibration.keys() & evaluation.keys()):
        raise StepError(
            f"{calibration[digest]} and {evaluation[digest]} are the same image",
            remedy="Remove one: an image that calibrated a model says nothing about its accuracy.",
        )
    return path / split, list((calibration if split == "calibration" else evaluation).values())


def _by_digest(folder: Path) -> dict[str, Path]:
    """SHA-256 of the content -> image, sorted by it; of copies the first by name."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in EXTENSIONS and path.is_file() and not path.name.startswith("."):
            try:
                found.setdefault(hashlib.sha256(path.read_bytes()).hexdigest(), path)
            except OSError as error:
                raise StepError(f"{path} cannot be read: {error.strerror or error}") from error
    return dict(sorted(found.items()))


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is no number of JSON")


def _truth(folder: Path) -> dict[str, dict[str, Any]]:
    path = folder / TRUTH
    try:
        truth = json.loads(path.read_text("utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        raise StepError(
            f"the ground truth cannot be read: {error.strerror or error}",
            where=str(path),
            remedy="Make it a file that you may read, or remove it.",
        ) from error
    except (ValueError, RecursionError) as error:
        fault = "nested too deeply" if isinstance(error, RecursionError) else error
        raise StepError(f"the ground truth is not JSON: {fault}", where=str(path), remedy=_WRITE_TRUTH) from error
    if not isinstance(truth, dict) or not all(isinstance(value, dict) for value in truth.values()):
        raise StepError(
            "the ground truth must map file names to mappings",
            where=str(path),
            remedy=_WRITE_TRUTH,
        )
    for name in truth:
        if not (folder / name).is_file():
            raise StepError(
                f"the ground truth names {name!r}, which is not in the folder",
                where=str(path),
                remedy="Correct the name, add the image, or take the entry out.",
            )
    return truth
