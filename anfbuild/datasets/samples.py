"""The form of a sample set: a folder with images or texts (.txt, UTF-8) and `index.json`.

    {"samples": [{"name": …, "file": …}, …]}

What is known of the samples, as their ground truth and licence, is not in it: who feeds a model need not see it, and is
not built again where it changes.

Light: images are read by what imports Pillow and numpy only when the first sample is asked for.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anfbuild.errors import StepError

if TYPE_CHECKING:
    from anfbuild.tasks import Content

INDEX = "index.json"
SPLITS = ("calibration", "evaluation")


@dataclasses.dataclass(frozen=True)
class Sample:
    """One image or text."""

    name: str
    content: Content
    """An image is upright."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A sample as `index.json` lists it."""

    name: str
    file: str
    """The path of the image or text inside the folder."""


def write_index(folder: Path, entries: Sequence[Entry]) -> None:
    """Write `index.json`, the same bytes for the same entries."""
    index = {"samples": [dataclasses.asdict(entry) for entry in entries]}
    (folder / INDEX).write_text(json.dumps(index, indent=1, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


TEXT = ".txt"


def read(folder: Path, limit: int | None = None) -> Iterator[Sample]:
    """The samples of a set in their order, the first `limit` of them, one in memory at a time.

    Raises StepError naming the file: no index, a damaged one, no samples, fewer than `limit`, one that is
    missing or cannot be read.
    """
    entries = read_index(folder)
    if limit is not None and limit > len(entries):
        raise StepError(f"{folder.name} has {len(entries)} samples, {limit} wanted", where=str(folder / INDEX))
    for entry in entries[:limit]:
        yield Sample(entry.name, _load(folder / entry.file))


def _load(path: Path) -> Content:
    if path.suffix == TEXT:
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StepError(f"{path} cannot be read as a text: {error}") from error
    from anfbuild.datasets.images import load_image

    return load_image(path)


def read_index(folder: Path) -> list[Entry]:
    """What `index.json` lists; StepError where it is missing, damaged or empty, or names a file outside the folder."""
    path = folder / INDEX
    try:
        listed = json.loads(path.read_text("utf-8"))["samples"]
        entries = [Entry(str(item["name"]), str(item["file"])) for item in listed]
    except FileNotFoundError:
        raise StepError(f"{folder} is not a set of samples: it has no {INDEX}") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StepError(f"the index of samples is damaged: {error!r}", where=str(path)) from error
    if not entries:
        raise StepError("the set has no samples", where=str(path))
    for entry in entries:
        if not (folder / entry.file).resolve().is_relative_to(folder.resolve()):
            raise StepError(f"sample {entry.name!r} lies outside the set: {entry.file!r}", where=str(path))
    return entries
