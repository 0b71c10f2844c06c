from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFont

from anfbuild import datasets
from anfbuild.errors import RecipeError


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """Plain photos, one smaller than a line, and the font inside Pillow."""
    folder = tmp_path / "assets"
    for group in ("photos", "fonts"):
        (folder / group).mkdir(parents=True)
    for name, size in (("red", (200, 150)), ("green", (20, 15)), ("blue", (200, 150)), ("grey", (20, 15))):
        Image.new("RGB", size, name).save(folder / "photos" / f"{name}.png")
    font = ImageFont.load_default(20)
    assert isinstance(font, ImageFont.FreeTypeFont)
    (folder / "fonts" / "plain.ttf").write_bytes(font.font_bytes)
    return folder


def write(assets: Path, folder: Path, samples: int, **changes: Any) -> dict[str, dict[str, Any]]:
    wanted = {"split": "evaluation", "seed": 0, "size": 48, **changes}
    return datasets.write("synthetic_lines", folder=folder, samples=samples, assets=assets, **wanted)


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.jpg")}


def test_each_image_holds_one_line_that_fits_a_recogniser(assets: Path, tmp_path: Path) -> None:
    truths = write(assets, tmp_path / "out", 12)
    for sample in datasets.read(tmp_path / "out"):
        assert not isinstance(sample.content, str)
        height, width = sample.content.shape[:2]
        text = truths[sample.name]["text"]
        assert 12 <= height <= 72
        assert width / height <= 7
        assert text == text.strip() != ""
        levels = sample.content.astype(int).sum(axis=2)
        edge = int(np.median(levels[:, -2:]))
        assert (np.abs(levels - edge) > 100).mean() > 0.03  # ink on what lies around it


def test_samples_depend_on_number_split_and_seed_alone(assets: Path, tmp_path: Path) -> None:
    write(assets, tmp_path / "2", 2)
    write(assets, tmp_path / "4", 4)
    few, many = digests(tmp_path / "2"), digests(tmp_path / "4")
    assert few.items() <= many.items()
    for name, changes in {"seed": {"seed": 1}, "split": {"split": "calibration"}}.items():
        write(assets, tmp_path / name, 2, **changes)
        assert not set(digests(tmp_path / name).values()) & set(few.values())


def test_too_small_is_refused(assets: Path, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="24 pixels or more, not 12"):
        write(assets, tmp_path / "out", 1, size=12)
