"""A sweep that goes on, and what a launcher brings back."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from anfbuild.cli import main
from anfbuild.cli.sweep import records

pytestmark = pytest.mark.usefixtures("project")


def newest(project: Path) -> Path:
    return records.find(project, "latest")


def samples(build: Any) -> list[int]:
    return [call["recipe"].config["dataset"]["samples"] for call in build.calls]


def test_a_sweep_goes_on_with_what_has_no_record(project: Path, build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=4,102,103,100,8"], build=build) == 130
    folder = newest(project)
    assert f"anfbuild -m --resume {folder.name}" in capsys.readouterr().err
    before = (folder / "000-dataset.samples_4" / "job.json").read_bytes()
    build.calls.clear()
    build.mended = True
    assert main(["-m", "--resume", folder.name, "--json"], build=build) == 3
    assert samples(build) == [102, 100, 8]  # not what was built, nor what missed a gate
    assert [call["folder"].name for call in build.calls] == [
        "001-dataset.samples_102",
        "003-dataset.samples_100",
        "004-dataset.samples_8",
    ]
    assert (folder / "000-dataset.samples_4" / "job.json").read_bytes() == before
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((folder / "results.json").read_text())
    assert [job["job"] for job in document["jobs"]] == [0, 1, 2, 3, 4]
    assert [job["exit_code"] for job in document["jobs"]] == [0, 0, 3, 0, 0]
    build.calls.clear()
    assert main(["-m", "--resume=latest"], build=build) == 3
    assert not build.calls


def test_jobs_are_those_of_the_start_whatever_a_glob_matches_now(project: Path, build: Any) -> None:
    assert main(["-m", "+recipe=glob(pl*)", "dataset.samples=4,102"], build=build) == 1
    (project / "recipes" / "another.yaml").write_text("defaults: [/recipe/plain, _self_]\n")
    (project / "recipes" / "pl0.yaml").write_text("defaults: [/recipe/plain, _self_]\n")
    build.calls.clear()
    build.mended = True
    assert main(["-m", "--resume", "latest"], build=build) == 0
    assert [call["recipe"].name for call in build.calls] == ["plain"]
    assert samples(build) == [102]


def test_the_plan_holds_no_place(project: Path, build: Any) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=4,6", "dataset.path=data"], build=build) == 0
    text = (newest(project) / "sweep.json").read_text()
    assert json.loads(text)["overrides"] == ["+recipe=plain", "dataset.samples=4,6", "dataset.path=data"]
    assert str(project) not in text


def test_what_cannot_be_gone_on_with(project: Path, build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "--resume", "latest"], build=build) == 2
    assert "there is no sweep to go on with" in capsys.readouterr().err
    assert main(["-m", "+recipe=plain", "dataset.samples=4,6"], build=build) == 0
    build.calls.clear()
    folder = newest(project)
    for arguments, message in [
        (["-m", "--resume", "../x"], f"valid choices: latest, {folder.name}"),
        (["-m", "--resume", folder.name, "dataset.samples=8"], "'dataset.samples=8' cannot be given with --resume"),
        (["--resume", folder.name], "Write anfbuild -m --resume ID"),
        (["-m", "--resume"], "--resume needs a value"),
    ]:
        assert main(arguments, build=build) == 2
        assert message in capsys.readouterr().err
    with records.held(folder):
        assert main(["-m", "--resume", "latest"], build=build) == 2
    assert "is running" in capsys.readouterr().err
    (folder / "sweep.json").write_text('{"format": 9}')
    assert main(["-m", "--resume", "latest"], build=build) == 2
    assert str(folder / "sweep.json") in capsys.readouterr().err
    (folder / "sweep.json").unlink()
    os.mkfifo(folder / "sweep.json")
    assert main(["-m", "--resume", "latest"], build=build) == 2
    assert str(folder / "sweep.json") in capsys.readouterr().err
    assert not build.calls


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        "[" * 100_000,
        '{"job": 1, "exit_code": 0}',
        '{"job": 1, "exit_code": 0, "overrides": 3}',
        '{"job": 1, "exit_code": 0, "overrides": [], "error": {"what": 4}}',
        '{"job": 1, "exit_code": 0, "overrides": [], "latency_ms": "x"}',
        None,
    ],
)
def test_a_damaged_record_counts_as_none(project: Path, build: Any, text: str | None) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=4,6"], build=build) == 0
    folder = newest(project) / "001-dataset.samples_6"
    for file in ("job.json", "state.json"):
        (folder / file).unlink()
        os.mkfifo(folder / file) if text is None else (folder / file).write_text(text)
    build.calls.clear()
    assert main(["-m", "--resume", "latest"], build=build) == 0
    assert samples(build) == [6]


def test_a_job_whose_record_cannot_be_kept_is_no_success(
    project: Path, build: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=4,6"], build=build) == 0
    place = newest(project) / "001-dataset.samples_6"
    shutil.rmtree(place)
    place.touch()
    assert main(["-m", "--resume", "latest"], build=build) == 1
    assert "no record could be kept of job 1" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["results.json", "results.csv", ".lock"])
def test_something_else_in_the_place_of_a_sweeps_file_is_named(
    project: Path, build: Any, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=4,6"], build=build) == 0
    place = newest(project) / name
    place.unlink(missing_ok=True)
    place.mkdir()
    assert main(["-m", "--resume", "latest"], build=build) == 1
    error = capsys.readouterr().err
    assert f"{place}: the sweep's folder cannot be used: " in error
    assert "Make it writable" in error


def test_a_launcher_that_is_not_installed_is_named_with_its_extra(
    build: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anfbuild.cli.sweep.launch._installed", lambda _loader: ["basic"])
    for launcher, extra in [("joblib", "joblib"), ("ray", "ray"), ("submitit_slurm", "slurm")]:
        assert main(["-m", "+recipe=plain", f"hydra/launcher={launcher}"], build=build) == 2
        assert f"pip install 'anfbuild[{extra}]'" in capsys.readouterr().err
    assert main(["-m", "+recipe=plain", "hydra/launcher=nope"], build=build) == 2
    assert "valid choices: basic, joblib, ray" in capsys.readouterr().err
    assert main(["-m", "+recipe=plain", "hydra/launcher=basic,joblib"], build=build) == 2
    assert not build.calls


def test_too_many_jobs_start_nothing(project: Path, build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "+recipe=plain", "dataset.seed=range(0,100000000)"], build=build) == 2
    assert "100000000 jobs" in capsys.readouterr().err
    assert not (project / "artifacts" / "sweeps").exists()
