from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from anfbuild import datasets
from anfbuild.errors import RecipeError, StepError


def make_set(folder: Path) -> Path:
    folder.mkdir()
    Image.new("RGB", (4, 2), (10, 20, 30)).save(folder / "0.png")
    (folder / "index.json").write_text(json.dumps({"samples": [{"name": "one", "file": "0.png"}]}))
    return folder


def read_one(path: Path) -> np.ndarray[Any, Any]:
    """The image of a set whose one sample is the file `path`."""
    samples = [{"name": path.name, "file": path.name}]
    (path.parent / "index.json").write_text(json.dumps({"samples": samples}))
    (sample,) = datasets.read(path.parent)
    return sample.content


def test_reads_name_and_image(tmp_path: Path) -> None:
    (sample,) = datasets.read(make_set(tmp_path / "set"))
    assert sample.name == "one"
    assert sample.content.shape == (2, 4, 3)
    assert sample.content.dtype == np.uint8
    assert sample.content[0, 0].tolist() == [10, 20, 30]


def test_takes_the_first_and_refuses_more_than_there_are(tmp_path: Path) -> None:
    folder = make_set(tmp_path / "set")
    assert len(list(datasets.read(folder, 1))) == 1
    with pytest.raises(StepError, match="has 1 samples, 2 wanted"):
        list(datasets.read(folder, 2))


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (None, "no index.json"),
        ("{", "damaged"),
        ("{}", "damaged"),
        ('{"samples": [{"name": "a"}]}', "damaged"),
        ('{"samples": []}', "no samples"),
        ('{"samples": [{"name": "a", "file": "../../a.png"}]}', "outside the set"),
        ('{"samples": [{"name": "a", "file": "gone.png"}]}', "gone.png cannot be read"),
    ],
)
def test_names_what_is_wrong_with_the_index(tmp_path: Path, index: str | None, message: str) -> None:
    folder = make_set(tmp_path / "set")
    if index is None:
        (folder / "index.json").unlink()
    else:
        (folder / "index.json").write_text(index)
    with pytest.raises(StepError, match=message):
        list(datasets.read(folder))


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB", "CMYK", "YCbCr", "LA", "RGBA", "I;16", "I"])
def test_every_mode_becomes_rgb(tmp_path: Path, mode: str) -> None:
    grey = Image.new("L", (3, 2), 255)
    if mode in ("I;16", "I"):
        image = Image.fromarray(np.full((2, 3), 65535, np.uint16 if mode == "I;16" else np.int32))
    else:
        image = grey.convert(mode)
    path = tmp_path / ("a.tif" if mode in ("CMYK", "YCbCr", "I") else "a.png")
    image.save(path)
    np.testing.assert_array_equal(read_one(path), np.full((2, 3, 3), 255, np.uint8))


def test_sixteen_bits_are_scaled(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0, 257, 32896, 65535]], np.uint16)).save(tmp_path / "a.png")
    assert read_one(tmp_path / "a.png")[0, :, 0].tolist() == [0, 1, 128, 255]


def test_transparent_pixels_are_white(tmp_path: Path) -> None:
    Image.fromarray(np.array([[[0, 0, 0, 0], [0, 0, 0, 255]]], np.uint8)).save(tmp_path / "a.png")
    assert read_one(tmp_path / "a.png")[0, :, 0].tolist() == [255, 0]


def test_photos_are_turned_upright(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # Orientation: the camera was turned by 90 degrees
    Image.new("RGB", (8, 4)).save(tmp_path / "a.jpg", exif=exif)
    assert read_one(tmp_path / "a.jpg").shape == (8, 4, 3)


def test_refuses_what_cannot_be_shown_faithfully(tmp_path: Path) -> None:
    Image.fromarray(np.zeros((2, 2), np.float32)).save(tmp_path / "float.tif")
    Image.fromarray(np.full((2, 2), 1 << 20, np.int32)).save(tmp_path / "wide.tif")
    frames = [Image.new("L", (2, 2), value) for value in (0, 255)]
    frames[0].save(tmp_path / "two.gif", save_all=True, append_images=frames[1:])
    for name, message in [("float.tif", "floating-point"), ("wide.tif", "32-bit"), ("two.gif", "several frames")]:
        with pytest.raises(StepError, match=f"{name}.*{message}"):
            read_one(tmp_path / name)


@pytest.mark.parametrize("keep", [0, 20, 400])
def test_names_a_damaged_image(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "cut.png"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StepError, match=r"cut\.png"):
        read_one(path)


def test_checking_imports_no_numpy() -> None:
    code = (
        "import sys; from anfbuild import datasets; datasets.check('synthetic_text', samples=1, size=960); "
        "sys.exit('numpy' in sys.modules or 'PIL' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("synthetic_txt", {}, "did you mean 'synthetic_text'"),
        ("synthetic_text", {"samples": 0}, "0 samples"),
        ("synthetic_text", {"seed": -1}, "seed is 0 or more"),
        ("synthetic_text", {"size": None}, "128 pixels"),
        ("synthetic_text", {"size": 32}, "128 pixels"),
        ("synthetic_text", {"assets": False}, "photos and fonts"),
        ("folder", {}, "needs a path"),
    ],
)
def test_refuses_a_wrong_recipe(kind: str, values: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        datasets.check(kind, **{"samples": 4, "size": 960, **values})
