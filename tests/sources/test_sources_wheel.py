"""pip itself is run against a folder of small wheels: no index is asked."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from anfbuild import sources
from anfbuild.errors import RecipeError, StepError

MEMBERS = {"toy_models/net.onnx": b"a network", "toy_models/data/words.txt": b"some words"}
DIGESTS = {name: hashlib.sha256(content).hexdigest() for name, content in MEMBERS.items()}


def make_wheel(folder: Path, version: str = "1.2", tags: str = "py3-none-any") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"toy_models-{version}-{tags}.whl"
    info = f"toy_models-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in MEMBERS.items():
            archive.writestr(name, content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: toy-models\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for its only index."""
    folder = tmp_path / "index"
    make_wheel(folder)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


def fetch(folder: Path, distribution: str = "toy-models==1.2", **files: str | None) -> dict[str, Path]:
    return sources.fetch_members(distribution, None, None, files or dict(DIGESTS), folder)


@pytest.mark.usefixtures("index")
def test_takes_several_members_of_one_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    start = subprocess.Popen

    def counting(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return start(*args, **options)

    monkeypatch.setattr(subprocess, "Popen", counting)
    found = fetch(tmp_path / "out")
    assert {name: path.read_bytes() for name, path in found.items()} == MEMBERS
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["net.onnx", "words.txt"]
    assert len(calls) == 1


@pytest.mark.usefixtures("index")
def test_a_source_of_kind_wheel_is_one_member(tmp_path: Path) -> None:
    name = "toy_models/net.onnx"
    path = sources.fetch(
        "wheel", distribution="toy-models==1.2", file=name, sha256=DIGESTS[name], folder=tmp_path / "out"
    )
    assert path.read_bytes() == MEMBERS[name]


def test_takes_the_wheel_of_the_named_python_and_platform(index: Path, tmp_path: Path) -> None:
    make_wheel(index, "2.0", "cp311-cp311-manylinux2014_aarch64")
    name = "toy_models/net.onnx"
    with pytest.raises(StepError, match=r"toy-models==2.0 for Python 3\.12, win_amd64"):
        sources.fetch_members("toy-models==2.0", "3.12", "win_amd64", {name: DIGESTS[name]}, tmp_path / "out")
    found = sources.fetch_members(
        "toy-models==2.0", "3.11", "manylinux2014_aarch64", {name: DIGESTS[name]}, tmp_path / "out"
    )
    assert found[name].read_bytes() == MEMBERS[name]


@pytest.mark.usefixtures("index")
def test_names_near_members(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="has no file") as caught:
        fetch(tmp_path, **{"toy_models/models/net.onnx": "0" * 64})
    assert caught.value.choices[0] == "toy_models/net.onnx"


@pytest.mark.usefixtures("index")
def test_says_the_digest_of_an_unpinned_member(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="not pinned") as caught:
        fetch(tmp_path / "out", **{"toy_models/net.onnx": None})
    assert DIGESTS["toy_models/net.onnx"] in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("index")
def test_refuses_another_member_than_the_pinned_one(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=DIGESTS["toy_models/net.onnx"]):
        fetch(tmp_path / "out", **{"toy_models/net.onnx": "0" * 64})
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.usefixtures("index")
def test_names_the_versions_that_there_are(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"toy-models==9\.9") as caught:
        fetch(tmp_path, "toy-models==9.9")
    assert caught.value.choices == ["1.2"]


def test_says_so_when_the_index_is_out_of_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:secret@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("NO_PROXY", "*")
    with pytest.raises(StepError, match=r"toy-models==1\.2 .* out of reach") as caught:
        fetch(tmp_path)
    assert "in the store" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_without_retries_pip_does_not_say_which_of_two_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "no-config"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("NO_PROXY", "*")
    with pytest.raises(StepError, match=r"has no wheel of toy-models==1\.2 .* or could not be reached") as caught:
        fetch(tmp_path)
    assert "Correct the distribution" in caught.value.remedy
    assert "can be reached" in caught.value.remedy


def test_says_how_to_get_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(StepError, match="ensurepip"):
        fetch(tmp_path)


@pytest.mark.usefixtures("index")
def test_gives_up_in_time(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"within 0\.01 s"):
        sources.fetch_members("toy-models==1.2", None, None, dict(DIGESTS), tmp_path, timeout_s=0.01)


def test_a_damaged_wheel_is_named(index: Path, tmp_path: Path) -> None:
    path = make_wheel(index)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"a network", b"a netwerk"))
    with pytest.raises(StepError, match="damaged"):
        fetch(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    "distribution", ["toy-models", "toy-models>=1", "toy-models==1.*", "--index-url=x==1", "a==1 b==2", "a @ file:///x"]
)
def test_refuses_what_is_not_pinned(distribution: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="not a pinned distribution"):
        fetch(tmp_path, distribution)


@pytest.mark.parametrize("member", ["../net.onnx", "/etc/passwd", "a//b", "a\\b", "a/", ".", ""])
def test_refuses_members_that_lead_elsewhere(member: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="not the path of a file inside"):
        fetch(tmp_path, **{member: "0" * 64})


def test_refuses_two_members_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="would both be written"):
        fetch(tmp_path, **{"a/x": "0" * 64, "b/x": "0" * 64})


@pytest.mark.parametrize(("python", "platform"), [("--pre", None), (None, "a b"), ("py311", None)])
def test_refuses_malformed_tags(python: str | None, platform: str | None, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="is not a"):
        sources.fetch_members("a==1", python, platform, dict(DIGESTS), tmp_path)
