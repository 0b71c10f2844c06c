"""Cuts of pinned photos: the same bytes every time, each split its own photos, no ground truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from anfbuild import datasets
from anfbuild.errors import RecipeError, StepError

COLOURS = {
    "calibration_a/red.png": (200, 0, 0),
    "calibration_b/green.png": (0, 200, 0),
    "evaluation/blue.png": (0, 0, 200),
}


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    """Photos that are told by their colour and, from dark to light, by the place of a cut."""
    for name, colour in COLOURS.items():
        path = tmp_path / "assets" / name
        path.parent.mkdir(parents=True)
        ramp = np.linspace(0.3, 1, 90)[None, :, None] * np.array(colour)
        Image.fromarray(np.broadcast_to(ramp, (70, 90, 3)).astype(np.uint8)).save(path)
    (tmp_path / "assets" / "assets.json").write_text("{}")
    return tmp_path / "assets"


def images(assets: Path, folder: Path, split: str = "evaluation", samples: int = 4, seed: int = 0) -> list[np.ndarray]:
    found = datasets.write("photos", folder=folder, split=split, samples=samples, seed=seed, size=32, assets=assets)
    assert found == {}
    return [sample.content for sample in datasets.read(folder)]


def channels(cuts: list[np.ndarray]) -> list[int]:
    return [int(cut.mean(axis=(0, 1)).argmax()) for cut in cuts]


def test_each_split_cuts_its_own_photos_in_turn(assets: Path, tmp_path: Path) -> None:
    assert channels(images(assets, tmp_path / "c", "calibration")) == [0, 1, 0, 1]
    cuts = images(assets, tmp_path / "e")
    assert channels(cuts) == [2, 2, 2, 2]
    assert {cut.shape for cut in cuts} == {(32, 32, 3)}
    assert len({cut.tobytes() for cut in cuts}) == 4
    rising = [cut[:, -1].mean() > cut[:, 0].mean() for cut in images(assets, tmp_path / "m", samples=16)]
    assert 0 < sum(rising) < 16  # some are mirrored


def test_a_sample_depends_on_its_number_and_the_seed_alone(assets: Path, tmp_path: Path) -> None:
    few, many = images(assets, tmp_path / "few", samples=2), images(assets, tmp_path / "many", samples=5)
    np.testing.assert_array_equal(few, many[:2])
    assert not np.array_equal(few[0], images(assets, tmp_path / "other", seed=1)[0])


def test_a_photo_serves_one_split(assets: Path, tmp_path: Path) -> None:
    (assets / "evaluation" / "again.png").write_bytes((assets / "calibration_a" / "red.png").read_bytes())
    with pytest.raises(StepError, match=r"again\.png of evaluation is in calibration_a too"):
        images(assets, tmp_path / "out")
    for path in (assets / "evaluation").iterdir():
        path.unlink()
    with pytest.raises(StepError, match="no photos for evaluation"):
        images(assets, tmp_path / "out", "calibration")


def test_refuses_a_set_that_cannot_be() -> None:
    with pytest.raises(RecipeError, match="need a size"):
        datasets.check("photos", samples=1)
    with pytest.raises(RecipeError, match="no photos to cut"):
        datasets.check("photos", samples=1, size=32, assets=False)
