from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from anfbuild import sources
from anfbuild.errors import RecipeError, StepError

CONTENT = b"a model"
DIGEST = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "user" / "net.onnx"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("sha256", [None, DIGEST, DIGEST.upper()])
def test_copies_the_file_under_its_name(model: Path, tmp_path: Path, sha256: str | None) -> None:
    copy = sources.fetch("file", path=model, sha256=sha256, folder=tmp_path / "out")
    assert copy == tmp_path / "out" / "net.onnx"
    assert copy.read_bytes() == CONTENT
    assert [entry.name for entry in copy.parent.iterdir()] == ["net.onnx"]


def test_another_digest_leaves_nothing_and_says_both(model: Path, tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"expected 0{64}") as caught:
        sources.fetch("file", path=model, sha256="0" * 64, folder=tmp_path / "out")
    assert DIGEST in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_failed_copy_does_not_touch_what_was_there(model: Path, tmp_path: Path) -> None:
    kept = sources.fetch("file", path=model, folder=tmp_path / "out")
    model.write_bytes(b"another")
    with pytest.raises(StepError):
        sources.fetch("file", path=model, sha256=DIGEST, folder=tmp_path / "out")
    assert kept.read_bytes() == CONTENT


def test_names_what_lies_near_a_missing_file(model: Path, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="does not exist") as caught:
        sources.fetch("file", path=model.with_name("nett.onnx"), folder=tmp_path)
    assert caught.value.choices == ["net.onnx"]


def test_refuses_a_folder_and_an_empty_file(model: Path, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="is a folder"):
        sources.fetch("file", path=model.parent, folder=tmp_path)
    model.write_bytes(b"")
    with pytest.raises(StepError, match="is empty"):
        sources.fetch("file", path=model, folder=tmp_path / "out")


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("fiel", {}, "did you mean 'file'"),
        ("file", {}, "needs 'path'"),
        ("file", {"path": Path("a"), "distribution": "a==1"}, "no meaning"),
        ("file", {"path": Path("a"), "sha256": "abc"}, "64 hexadecimal digits"),
        ("wheel", {"distribution": "a==1"}, "needs 'file'"),
        ("wheel", {"distribution": "a==1", "file": "f", "path": Path("a")}, "no meaning"),
    ],
)
def test_refuses_a_wrong_recipe_before_any_work(kind: str, values: dict[str, object], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        sources.check(kind, **values)


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """A folder with a model and its data."""
    folder = tmp_path / "split"
    (folder / "data").mkdir(parents=True)
    (folder / "net.onnx").write_bytes(CONTENT)
    (folder / "data" / "w.bin").write_bytes(b"weights")
    return folder


def test_a_folder_brings_all_that_lies_in_it(split: Path, tmp_path: Path) -> None:
    copy = sources.fetch("file", path=split, file="net.onnx", folder=tmp_path / "out")
    assert copy == tmp_path / "out" / "net.onnx"
    assert (tmp_path / "out" / "data" / "w.bin").read_bytes() == b"weights"
    assert sources.fetch("file", path=split, file=".", folder=tmp_path / "whole") == tmp_path / "whole"


def test_a_folder_is_pinned_by_the_digest_of_its_listing(split: Path, tmp_path: Path) -> None:
    listing = f"{hashlib.sha256(b'weights').hexdigest()}  data/w.bin\n{DIGEST}  net.onnx\n"
    pin = hashlib.sha256(listing.encode()).hexdigest()
    sources.fetch("file", path=split, file="net.onnx", sha256=pin, folder=tmp_path / "out")
    (split / "data" / "w.bin").write_bytes(b"others")
    with pytest.raises(StepError, match="not the pinned folder"):
        sources.fetch("file", path=split, file="net.onnx", sha256=pin, folder=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_names_what_lies_near_a_missing_file_of_a_folder(split: Path, tmp_path: Path) -> None:
    with pytest.raises(StepError, match="does not exist") as caught:
        sources.fetch("file", path=split, file="nett.onnx", folder=tmp_path / "out")
    assert (caught.value.where, caught.value.choices) == ("source.file", ["net.onnx"])
    with pytest.raises(StepError, match="is not a folder"):
        sources.fetch("file", path=split / "net.onnx", file="net.onnx", folder=tmp_path / "out")
    with pytest.raises(RecipeError, match="not the path of a file"):
        sources.fetch("file", path=split, file="../user/net.onnx", folder=tmp_path / "out")
