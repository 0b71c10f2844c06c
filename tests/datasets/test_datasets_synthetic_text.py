from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFont

from anfbuild import datasets
from anfbuild.errors import StepError
from anfbuild.tasks.geometry import area, iou

SIZE = 160
COLOURS = {"red": (200, 0, 0), "green": (0, 200, 0), "blue": (0, 0, 200), "grey": (90, 90, 90)}


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """Plain photos, each told by its colour, and the font inside Pillow."""
    folder = tmp_path / "assets"
    for group in ("photos", "fonts"):
        (folder / group).mkdir(parents=True)
    for name, colour in COLOURS.items():
        Image.new("RGB", (200, 150), colour).save(folder / "photos" / f"{name}.png")
    font = ImageFont.load_default(20)
    assert isinstance(font, ImageFont.FreeTypeFont)
    (folder / "fonts" / "plain.ttf").write_bytes(font.font_bytes)
    return folder


def write_truths(
    assets: Path, folder: Path, split: str = "evaluation", samples: int = 3, seed: int = 0
) -> dict[str, dict[str, Any]]:
    return datasets.write(
        "synthetic_text", folder=folder, split=split, samples=samples, seed=seed, size=SIZE, assets=assets
    )


def write(assets: Path, folder: Path, split: str = "evaluation", samples: int = 3, seed: int = 0) -> Path:
    write_truths(assets, folder, split, samples, seed)
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_boxes_lie_in_the_image_and_apart(assets: Path, tmp_path: Path) -> None:
    truths = write_truths(assets, tmp_path / "out", samples=6)
    for sample in datasets.read(tmp_path / "out"):
        quads = truths[sample.name]["quads"]
        assert sample.content.shape == (SIZE, SIZE, 3)
        assert len(quads) == len(truths[sample.name]["texts"]) >= 1
        assert np.min(quads) >= 0
        assert np.max(quads) <= SIZE
        assert all(area(quad) > 100 for quad in quads)
        assert all(iou(a, b) == 0 for i, a in enumerate(quads) for b in quads[:i])


def test_text_is_where_the_truth_says(assets: Path, tmp_path: Path) -> None:
    """On a plain photo, what differs from the corner's colour lies in the boxes, and each box has some of it."""
    truths = write_truths(assets, tmp_path / "out", samples=6)
    for sample in datasets.read(tmp_path / "out"):
        image = sample.content.astype(int)
        ink = np.abs(image - image[:6, :6].mean(axis=(0, 1))).max(axis=2) > 60
        y, x = np.mgrid[0:SIZE, 0:SIZE] + 0.5
        covered = np.zeros_like(ink)
        for quad in truths[sample.name]["quads"]:
            corners = np.array(quad)
            inside, near = np.ones_like(ink), np.ones_like(ink)
            for (ax, ay), (bx, by) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
                distance = ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / np.hypot(bx - ax, by - ay)
                inside &= distance >= 0
                near &= distance >= -6
            assert ink[inside].mean() > 0.03
            covered |= near
        assert ink[~covered].mean() < 0.002


def test_samples_do_not_depend_on_how_many_are_asked_for(assets: Path, tmp_path: Path) -> None:
    few, many = digests(write(assets, tmp_path / "2", samples=2)), digests(write(assets, tmp_path / "4", samples=4))
    assert all(many[name] == digest for name, digest in few.items() if name != "index.json")
    assert len(many) == 5


def test_another_process_writes_the_same_bytes(assets: Path, tmp_path: Path) -> None:
    here = digests(write(assets, tmp_path / "here"))
    code = (
        "import sys; from pathlib import Path; from anfbuild import datasets; datasets.write('synthetic_text', "
        f"folder=Path(sys.argv[1]), split='evaluation', samples=3, seed=0, size={SIZE}, assets=Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "there"), str(assets)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": "7"})
    assert digests(tmp_path / "there") == here


def test_seed_and_split_change_every_image(assets: Path, tmp_path: Path) -> None:
    sets = [
        digests(write(assets, tmp_path / f"{split}{seed}", split, seed=seed))
        for split in datasets.SPLITS
        for seed in (0, 1)
    ]
    assert (
        len({digest for found in sets for digest in found.values()}) == 4 * 3 + 1
    )  # three images each, and an index that is the same for all


def test_splits_share_no_photo(assets: Path, tmp_path: Path) -> None:
    seen = {}
    for split in datasets.SPLITS:
        means = [
            sample.content[:6, :6].mean(axis=(0, 1))
            for sample in datasets.read(write(assets, tmp_path / split, split, samples=12))
        ]
        seen[split] = {min(COLOURS, key=lambda name: float(np.abs(mean - COLOURS[name]).sum())) for mean in means}
    assert seen["calibration"] | seen["evaluation"] == set(COLOURS)
    assert not seen["calibration"] & seen["evaluation"]


def test_names_what_is_missing_or_damaged(assets: Path, tmp_path: Path) -> None:
    (assets / "fonts" / "plain.ttf").write_bytes(b"no font")
    with pytest.raises(StepError, match=r"plain\.ttf is not a font"):
        write(assets, tmp_path / "a")
    (assets / "fonts" / "plain.ttf").unlink()
    with pytest.raises(StepError, match="no fonts"):
        write(assets, tmp_path / "b")
    for name in ("red", "green", "blue"):
        (assets / "photos" / f"{name}.png").unlink()
    with pytest.raises(StepError, match="two or more"):
        write(assets, tmp_path / "c")
