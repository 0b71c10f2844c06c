"""The kinds of data set by name. Light, so that a recipe is checked at start-up without numpy.

A distribution may add more: an entry point of the group `anfbuild.datasets` is called as `write` is, without the kind,
writes the images of one split and their index (`Entry`, `write_index`) and returns their ground truth.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anfbuild import plugins
from anfbuild.datasets.samples import SPLITS
from anfbuild.errors import RecipeError, did_you_mean

KINDS = ("folder", "photos", "synthetic_lines", "synthetic_sentences", "synthetic_text")

OF_TEXTS = frozenset(("synthetic_sentences",))
"""The kinds whose samples are texts; those of all others are images."""

MIN_SIZE = {"synthetic_text": 128, "synthetic_lines": 24}
"""Pixels: a smaller generated image has no room for readable text."""


def check(
    kind: str,
    *,
    samples: int,
    seed: int = 0,
    size: int | None = None,
    path: Path | None = None,
    assets: bool = True,
) -> None:
    """Refuse a data set that cannot be made, without touching a file. `assets`: whether the recipe lists any.

    Raises RecipeError: an unknown kind, no samples, a negative seed, a key that the kind needs and that is missing.
    """
    known = [*KINDS, *plugins.installed(plugins.DATASETS)]
    if kind not in known:
        raise RecipeError(
            f"unknown kind of data set {kind!r}",
            where="dataset.kind",
            choices=known,
            remedy=did_you_mean(kind, known),
        )
    if samples < 1:
        raise RecipeError(f"{samples} samples are none", where="dataset.samples", remedy="Write 1 or more.")
    if seed < 0:
        raise RecipeError(f"a seed is 0 or more, not {seed}", where="dataset.seed")
    if kind == "folder" and path is None:
        raise RecipeError("a data set of kind 'folder' needs a path", where="dataset.path", remedy="Write it.")
    if kind in MIN_SIZE and (size is None or size < MIN_SIZE[kind]):
        raise RecipeError(f"images of {kind!r} have {MIN_SIZE[kind]} pixels or more, not {size}", where="dataset.size")
    if kind in MIN_SIZE and not assets:
        raise RecipeError("text needs photos and fonts", where="dataset.assets", remedy="List both groups of files.")
    if kind == "photos" and size is None:
        raise RecipeError("cuts of photos need a size", where="dataset.size", remedy="Write their edge in pixels.")
    if kind == "photos" and not assets:
        raise RecipeError(
            "there are no photos to cut",
            where="dataset.assets",
            remedy="List some in groups whose names begin with calibration and evaluation.",
        )


def write(
    kind: str,
    *,
    folder: Path,
    split: str,
    samples: int,
    seed: int = 0,
    size: int | None = None,
    path: Path | None = None,
    assets: Path | None = None,
) -> dict[str, dict[str, Any]]:
    """Write the first `samples` samples of one split, `calibration` or `evaluation`, to `folder`.

    Returns the ground truth by sample name, in the words of the task that judges it; empty where there is none.

    `size` is the side of a generated image in pixels, of one line its height, `path` a user's folder, `assets` a folder
    with the files that images are made from, a folder a group. A sample depends on its number, the split and the seed,
    never on how many are asked for. Raises RecipeError as `check` does and for an unknown split, StepError for data
    that is missing, too little or unreadable.
    """
    check(kind, samples=samples, seed=seed, size=size, path=path, assets=assets is not None)
    if split not in SPLITS:
        raise RecipeError(f"unknown split {split!r}", choices=SPLITS)
    folder.mkdir(parents=True, exist_ok=True)
    if kind not in KINDS:
        made: dict[str, dict[str, Any]] = plugins.load(plugins.DATASETS, kind)(
            folder=folder, split=split, samples=samples, seed=seed, size=size, path=path, assets=assets
        )
        return made
    if kind == "folder":
        from anfbuild.datasets.folder import write_folder

        assert path is not None
        return write_folder(path, split, samples, folder)
    if kind == "synthetic_sentences":
        from anfbuild.datasets.synthetic_sentences import write_synthetic_sentences

        return write_synthetic_sentences(split, samples, seed, folder)
    assert assets is not None
    assert size is not None
    if kind == "photos":
        from anfbuild.datasets.photos import write_photos

        write_photos(assets, split, samples, seed, size, folder)
        return {}
    if kind == "synthetic_lines":
        from anfbuild.datasets.synthetic_lines import write_synthetic_lines

        return write_synthetic_lines(assets, split, samples, seed, size, folder)
    from anfbuild.datasets.synthetic_text import write_synthetic_text

    return write_synthetic_text(assets, split, samples, seed, size, folder)
