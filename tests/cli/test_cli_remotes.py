"""`--remote`, `--push`, `cache push` and `cache pull` from the command line."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anfbuild.cli.app import main
from anfbuild.engine.remote.settings import Settings
from anfbuild.engine.store import Store
from anfbuild.errors import AnfbuildError

KEY = "a" * 64


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("ANFBUILD_REMOTE", "ANFBUILD_REMOTE_WRITE", "ANFBUILD_REMOTE_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANFBUILD_CACHE", str(tmp_path / "store"))
    (tmp_path / "share").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commit(store: Store, key: str, text: str, *, private: bool = False) -> None:
    with store.lock(key), store.workspace(key) as folder:
        (folder / "out.txt").write_text(text)
        store.commit(key, folder, {"manifest": {"step": "s"}}, private=private)


def pushed(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["cache", "push", "--remote", "share", "--json", *words]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def files(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_push_sends_what_the_remote_lacks_and_says_how_much(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(Store(project / "store"), KEY, "text")
    first, second = pushed(capsys), pushed(capsys)
    assert (first["sent"], first["present"], first["blobs"], first["bytes"]) == (1, 0, 1, 4)
    assert (second["sent"], second["present"], second["blobs"], second["bytes"]) == (0, 1, 0, 0)
    assert first["remote"] == str(project / "share")


@pytest.mark.parametrize("text", ["[]", "{", '{"recipe": "r"}', '{"recipe": 1, "goal": 1, "steps": [], "private": {}}'])
def test_push_passes_over_what_is_damaged(project: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    store = Store(project / "store")
    commit(store, KEY, "text")
    store.record("r", KEY, {"recipe": "r", "goal": "s", "steps": {"s": KEY}, "private": []})
    (store.root / "builds" / "r" / f"{'b' * 64}.json").write_text(text)
    os.mkfifo(store.root / "ac" / f"{'b' * 64}.json")
    assert pushed(capsys)["sent"] == 1
    assert pushed(capsys, "+recipe=r")["present"] == 1


def test_push_leaves_out_what_is_private_or_not_whole(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(project / "store")
    commit(store, "b" * 64, "secret", private=True)
    commit(store, "c" * 64, "found private by a later build")
    commit(store, "d" * 64, "damaged")
    store.record("r", "c" * 64, {"recipe": "r", "goal": "s", "steps": {"s": "c" * 64}, "private": ["s"]})
    result = store.lookup("d" * 64)
    assert result is not None
    blob = store.blob(result.files["out.txt"][0])
    blob.chmod(0o644)
    blob.write_text("DAMAGED")
    document = pushed(capsys)
    assert (document["private"], document["incomplete"], document["sent"]) == (2, 1, 0)
    assert files(project / "share") == []


def test_push_keeps_the_first_outputs_and_names_the_key(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(Store(project / "store"), KEY, "one")
    pushed(capsys)
    before = {name: (project / "share" / name).read_bytes() for name in files(project / "share")}
    commit(Store(project / "store"), KEY, "two")
    assert main(["cache", "push", "--remote", "share", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["different_keys"] == [KEY]
    assert KEY[:12] in err
    assert {name: (project / "share" / name).read_bytes() for name in files(project / "share")} == before


def test_push_of_a_recipe_takes_its_builds_alone(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = Store(project / "store")
    for key, recipe in (("a" * 64, "x.one"), ("b" * 64, "two")):
        commit(store, key, recipe)
        store.record(recipe, key, {"recipe": recipe, "goal": "s", "steps": {"s": key}, "private": []})
    assert pushed(capsys, "+recipe=x/one")["sent"] == 1
    assert files(project / "share" / "ac") == ["a" * 64]
    assert main(["cache", "push", "--remote", "share", "+recipe=three"]) == 2
    assert "valid choices: two, x.one" in capsys.readouterr().err
    assert main(["cache", "push", "--remote", "share", "target=sm8650"]) == 2
    assert "+recipe=NAME" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("word", ["push", "pull"])
def test_without_a_remote_there_is_an_error(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", word]) == 2
    assert "ANFBUILD_REMOTE: no remote is set" in capsys.readouterr().err


def test_a_remote_that_fails_is_an_error_of_push(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit(Store(project / "store"), KEY, "text")
    assert main(["cache", "push", "--remote", "nowhere"]) == 1
    assert "nowhere: there is no such folder" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["+recipe=x", "--push"], "no remote to push to"),
        (["+recipe=x", "--remote", "ftp://h"], "no kind of remote 'ftp'"),
        (["-m", "+recipe=x", "--remote", "http://u:secret@h"], "netrc"),
    ],
)
def test_a_wrong_remote_is_a_wrong_command_line(
    words: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "recipes").mkdir()
    (project / "recipes" / "x.yaml").write_text("defaults: [_self_]\n")
    assert main([*words]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "secret" not in err


@pytest.mark.usefixtures("project")
def test_a_sweeps_job_carries_the_place_and_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANFBUILD_REMOTE", "https://host/x")
    monkeypatch.setenv("ANFBUILD_REMOTE_TOKEN", "t0k3n")
    builds: list[Callable[..., Any]] = []

    def sweep(_overrides: object, _project: Path, build: Callable[..., Any], *_: object, **__: object) -> None:
        builds.append(build)
        raise AnfbuildError("enough")

    monkeypatch.setattr("anfbuild.cli.sweep.sweep", sweep)
    assert main(["-m", "+recipe=x", "--push"]) == 1
    data = pickle.dumps(builds[0])
    assert b"https://host/x" in data
    assert b"t0k3n" not in data
    (inner,) = pickle.loads(data).args
    assert inner.keywords["remote"] == Settings("https://host/x", write=True)
