from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from anfbuild import datasets
from anfbuild.errors import StepError


def make_images(folder: Path, count: int, first: int = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        Image.new("RGB", (2, 2), (number, 0, 0)).save(folder / f"photo{number:03d}.png")
    return folder


def names(path: Path, split: str, samples: int, out: Path) -> list[str]:
    datasets.write("folder", folder=out, split=split, samples=samples, path=path)
    return [sample.name for sample in datasets.read(out)]


def test_splits_share_no_image_and_are_the_same_every_time(tmp_path: Path) -> None:
    photos = make_images(tmp_path / "photos", 12)
    calibration = names(photos, "calibration", 8, tmp_path / "c")
    evaluation = names(photos, "evaluation", 4, tmp_path / "e")
    assert sorted(calibration + evaluation) == sorted(path.name for path in photos.iterdir())
    assert names(photos, "calibration", 3, tmp_path / "less") == calibration[:3]
    assert calibration != sorted(calibration)


def test_split_does_not_depend_on_names_and_takes_copies_once(tmp_path: Path) -> None:
    photos = make_images(tmp_path / "photos", 6)
    datasets.write("folder", folder=tmp_path / "a", split="evaluation", samples=2, path=photos)
    for path in list(photos.iterdir()):
        content = path.read_bytes()
        path.rename(photos / f"x{path.name[::-1][4:]}.png")
        (photos / f"copy of {path.name}").write_bytes(content)
    datasets.write("folder", folder=tmp_path / "b", split="evaluation", samples=2, path=photos)
    for file in ("0000.png", "0001.png"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    with pytest.raises(StepError, match="2 different images for evaluation, 3 wanted"):
        datasets.write("folder", folder=tmp_path / "d", split="evaluation", samples=3, path=photos)


def test_subfolders_are_the_splits_and_truth_lies_beside_the_images(tmp_path: Path) -> None:
    make_images(tmp_path / "p" / "calibration", 2)
    make_images(tmp_path / "p" / "evaluation", 2, first=5)
    truth = {"photo005.png": {"quads": [], "texts": []}}
    (tmp_path / "p" / "evaluation" / "truth.json").write_text(json.dumps(truth))
    assert sorted(names(tmp_path / "p", "calibration", 2, tmp_path / "c")) == ["photo000.png", "photo001.png"]
    found = datasets.write("folder", folder=tmp_path / "e", split="evaluation", samples=2, path=tmp_path / "p")
    assert found == {"photo005.png": truth["photo005.png"], "photo006.png": {}}
    assert "quads" not in (tmp_path / "e" / "index.json").read_text()  # else who feeds a model would see the truth


def test_without_the_file_there_is_no_truth_but_one_beside_the_subfolders_is_misplaced(tmp_path: Path) -> None:
    make_images(tmp_path / "p" / "calibration", 1)
    make_images(tmp_path / "p" / "evaluation", 1, first=5)
    assert datasets.write("folder", folder=tmp_path / "e", split="evaluation", samples=1, path=tmp_path / "p") == {}
    (tmp_path / "p" / "truth.json").write_text("{}")
    with pytest.raises(StepError, match="lies beside evaluation/"):
        datasets.write("folder", folder=tmp_path / "f", split="evaluation", samples=1, path=tmp_path / "p")


def test_refuses_an_image_in_both_subfolders(tmp_path: Path) -> None:
    make_images(tmp_path / "calibration", 2)
    make_images(tmp_path / "evaluation", 2, first=1)
    with pytest.raises(StepError, match="same image"):
        names(tmp_path, "calibration", 1, tmp_path / "out")


def test_refuses_one_subfolder_alone(tmp_path: Path) -> None:
    make_images(tmp_path / "calibration", 2)
    with pytest.raises(StepError, match="calibration/ alone"):
        names(tmp_path, "evaluation", 1, tmp_path / "out")


def test_says_how_many_images_there_are(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="2 different images for calibration, 5 wanted"):
        names(make_images(tmp_path / "photos", 3), "calibration", 5, tmp_path / "out")
    with pytest.raises(StepError, match="is not a folder"):
        names(tmp_path / "gone", "calibration", 5, tmp_path / "out")


def test_names_an_unreadable_image(tmp_path: Path) -> None:
    photos = make_images(tmp_path / "photos", 3)
    for path in photos.iterdir():
        path.write_bytes(b"no image " + path.name.encode())
    with pytest.raises(StepError, match=r"photo00\d\.png is not an image"):
        names(photos, "calibration", 1, tmp_path / "out")


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ("[", "not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "must map"),
        ('{"photo9.png": {}}', "photo9.png"),
        ('{"a\\u0000": {}}', "not in the folder"),
        (None, "cannot be read"),
    ],
)
def test_refuses_a_wrong_truth(tmp_path: Path, truth: str | None, message: str) -> None:
    photos = make_images(tmp_path / "photos", 3)
    if truth is None:
        (photos / "truth.json").mkdir()
    else:
        (photos / "truth.json").write_text(truth)
    with pytest.raises(StepError, match=message) as caught:
        names(photos, "calibration", 1, tmp_path / "out")
    assert caught.value.where == str(photos / "truth.json")
    assert caught.value.remedy
