"""The verbs that look after a store: what they do, what they say, what they refuse."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projects import Ran, tiny_model, write_tiny

from anfbuild.cli import main

Run = Callable[..., Ran]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store of a tiny project, which is the working directory."""
    write_tiny(tmp_path / "tiny")
    monkeypatch.chdir(tmp_path / "tiny")
    monkeypatch.setenv("ANFBUILD_CACHE", str(tmp_path / "store"))
    return tmp_path / "store"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Call anfbuild in this process."""

    def call(*arguments: str) -> Ran:
        code = main(arguments)
        return Ran(code, *capsys.readouterr())

    return call


def age(store: Path, days: float) -> None:
    then = time.time() - days * 86400
    for path in store.rglob("*"):
        os.utime(path, (then, then))


def built(run: Run, *overrides: str) -> list[str]:
    ran = run("+recipe=mine", "goal=condition", *overrides, "--json")
    assert ran.code == 0, ran.err
    return ran.steps_run


def by_step(document: dict[str, Any], rows: str) -> dict[str, int]:
    return {row.get("step", row.get("name")): row["entries"] for row in document[rows]}


OTHER = "source.path=models/other.onnx"


def test_a_pinned_build_stays_and_another_goes(place: Path, run: Run) -> None:
    Path("models/other.onnx").write_bytes(tiny_model(shape=(1, 3, "h", "w")).SerializeToString())
    assert run("cache", "status", "--json").document["entries"] == 0
    assert not place.exists()
    assert run("cache", "pin", "+recipe=mine", "goal=condition").code == 2
    assert run("cache", "verify", "--json").document["entries"] == 0
    built(run)
    assert run("cache", "pin", "+recipe=mine", "goal=condition", "--json").code == 0
    built(run, OTHER)
    age(place, 2)

    told = run("cache", "status", "--json").document
    assert by_step(told, "steps") == {"fetch": 2, "convert": 2, "condition": 2}
    assert (told["pins"], told["pinned"], [row["name"] for row in told["recipes"]]) == (1, 3, ["mine"])
    shown = run("cache", "status").out
    for word in (str(place), "condition", "A blob that several rows share counts in each of them"):
        assert word in shown

    dry = run("cache", "gc", "--max-size", "0MB").out
    for word in ("would go: entries 3", "more than --max-size", "Nothing was removed: --delete does it."):
        assert word in dry
    done = run("cache", "gc", "--max-size=0MB", "--delete", "--json").document
    assert by_step(done, "rows") == {"fetch": 1, "convert": 1, "condition": 1}
    assert (built(run), built(run, OTHER)) == ([], ["fetch", "convert", "condition"])

    assert run("cache", "unpin", "+recipe=mine", "goal=condition").code == 0
    assert run("cache", "unpin", "+recipe=mine", "goal=condition").code == 2
    age(place, 2)
    assert run("cache", "gc", "--older-than", "1d", "--grace", "3d", "--delete").code == 0
    assert run("cache", "status", "--json").document["entries"] == 6
    assert run("cache", "gc", "--older-than", "1d", "--delete").code == 0
    assert run("cache", "status", "--json").document["blobs"] == 0


def test_verify_finds_puts_aside_and_says_what_next(place: Path, run: Run) -> None:
    built(run)
    sound = run("cache", "verify", "--json")
    assert (sound.code, sound.document["damage"]) == (0, [])
    blob = max(place.glob("cas/*/*"), key=lambda path: path.stat().st_size)
    blob.chmod(0o644)
    blob.write_bytes(b"x" * blob.stat().st_size)
    found = run("cache", "verify")
    assert found.code == 1
    for word in (str(blob), "another SHA-256", "put aside", "The next build makes again"):
        assert word in found.out
    assert run("cache", "verify").code == 0
    assert built(run)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cache"], ["takes 1 word", "status|verify|gc|pin|unpin"]),
        (["cache", "statsu"], ["cannot 'statsu'", "did you mean 'status'?"]),
        (["cache", "status", "--delete"], ["'cache status' takes no --delete"]),
        (["cache", "gc", "+recipe=mine"], ["takes no '+recipe=mine'", "whole store"]),
        (["cache", "gc", "--max-size", "20"], ["--max-size: '20' is no size", "GB", "Write --max-size 20GB"]),
        (["cache", "gc", "--older-than", "30"], ["--older-than: '30' is no time", "Write --older-than 30d"]),
        (["cache", "pin"], ["no recipe is chosen"]),
        (["cache", "pin", "+recipe=mine"], ["not in the store", "Build first: anfbuild +recipe=mine"]),
        (["cache", "unpin", "+recipe=mine"], ["this build of 'mine' is not pinned"]),
    ],
)
def test_a_wrong_call_is_refused(place: Path, run: Run, arguments: list[str], words: list[str]) -> None:
    ran = run(*arguments)
    assert not (place / "ac").exists()
    assert ran.code == 2
    for word in words:
        assert word in ran.err
    assert "Traceback" not in ran.err
    assert json.loads(run(*arguments, "--json").out)["exit_code"] == 2


@pytest.mark.parametrize("word", ["status", "verify", "gc"])
def test_a_folder_or_a_file_that_is_no_store(place: Path, run: Run, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    place.touch()
    for folder in (place, place.with_name("tiny")):
        monkeypatch.setenv("ANFBUILD_CACHE", str(folder))
        ran = run("cache", word)
        assert ran.code == 1
        assert str(folder) in ran.err
        assert "Set ANFBUILD_CACHE to the folder of a store" in ran.err
        assert "Traceback" not in ran.err


def test_a_store_that_cannot_be_locked(place: Path, run: Run) -> None:
    built(run)
    lock = place / "locks" / "commit.lock"
    lock.unlink()
    lock.mkdir()
    ran = run("cache", "gc", "--delete")
    assert ran.code == 1
    assert str(lock) in ran.err
    assert "set ANFBUILD_CACHE to another folder" in ran.err
