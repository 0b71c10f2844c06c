from __future__ import annotations

import contextlib
import csv
import dataclasses
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from anfbuild.cli import main
from anfbuild.errors import StepError

pytestmark = pytest.mark.usefixtures("project")


def folder_of(project: Path) -> Path:
    (folder,) = (project / "artifacts" / "sweeps").iterdir()
    return folder


def test_every_combination_is_built(project: Path, build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "-m",
        "+recipe=plain",
        "quantization=int8_per_channel,made",
        "dataset.samples=4,6",
        "evaluation.samples=2",
    ]
    assert main(arguments, build=build) == 0
    configs = [call["recipe"].config for call in build.calls]
    assert [(config["quantization"]["scheme"], config["dataset"]["samples"]) for config in configs] == [
        ("int8_per_channel", 4),
        ("int8_per_channel", 6),
        ("a16w8", 4),
        ("a16w8", 6),
    ]
    assert {config["evaluation"]["samples"] for config in configs} == {2}
    assert not any(call["latest"] for call in build.calls)

    folder = folder_of(project)
    assert [call["folder"].name for call in build.calls] == [
        "000-quantization_int8_per_channel-dataset.samples_4",
        "001-quantization_int8_per_channel-dataset.samples_6",
        "002-quantization_made-dataset.samples_4",
        "003-quantization_made-dataset.samples_6",
    ]
    assert all(call["folder"].parent == folder for call in build.calls)
    document = json.loads((folder / "results.json").read_text())
    assert [job["latency_ms"] for job in document["jobs"]] == [2.0, 3.0, 2.0, 3.0]
    rows = list(csv.DictReader((folder / "results.csv").open()))
    assert rows[3]["quantization"] == "made"
    assert rows[3]["dataset.samples"] == "6"
    assert rows[3]["accuracy_quantized"] == "0.89"
    out = capsys.readouterr().out
    assert "3    quantization=made dataset.samples=6" in out
    assert "f1 0.89" in out
    assert sorted(path.name for path in project.iterdir()) == [
        "artifacts",
        "conf",
        "recipes",
    ]  # no outputs/, no multirun/


def test_a_wrong_job_fails_alone(build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "+recipe=plain", "target=nope,sm8650", "--json"], build=build) == 2
    document = json.loads(capsys.readouterr().out)
    assert [job["exit_code"] for job in document["jobs"]] == [2, 0]
    assert document["exit_code"] == 2
    assert document["jobs"][0]["error"]["what"] == "there is no target 'nope'"
    assert len(build.calls) == 1


def test_the_highest_exit_code_wins(project: Path, build: Any) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=101,102,103,4,0"], build=build) == 3
    jobs = json.loads((folder_of(project) / "results.json").read_text())["jobs"]
    assert [job["exit_code"] for job in jobs] == [1, 1, 3, 0, 2]
    assert "ZeroDivisionError" in jobs[0]["error"]["what"]
    assert jobs[2]["error"]["remedy"] == "Try a16w8."


def test_globs_reach_recipes_in_folders(project: Path, build: Any) -> None:
    (project / "recipes" / "vision").mkdir()
    (project / "recipes" / "vision" / "det.yaml").write_text("defaults: [/recipe/plain, _self_]\n")
    assert main(["-m", "+recipe=glob([plain,vision*])"], build=build) == 0
    assert [call["recipe"].name for call in build.calls] == ["plain", "vision.det"]


def test_an_interrupted_sweep_keeps_what_is_done(project: Path, build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=4,100,6", "--json"], build=build) == 130
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert document == json.loads((folder_of(project) / "results.json").read_text())
    assert document["exit_code"] == 130
    assert [job["overrides"] for job in document["jobs"]] == [["dataset.samples=4"]]
    assert "run the same command again to go on" in captured.err


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_a_sweep_goes_no_further_where_a_job_made_an_error_of_an_interruption(
    build: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(*arguments: Any, **options: Any) -> Any:
        if build.calls:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGTERM)
            raise StepError("broke")
        return build(*arguments, **options)

    assert main(["-m", "+recipe=plain", "dataset.samples=4,5,6", "--json"], build=lost) == 130
    assert len(build.calls) == 1
    assert json.loads(capsys.readouterr().out)["exit_code"] == 130


def test_a_sweep_interrupted_at_once_leaves_nothing(
    project: Path, build: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=100,4", "--json"], build=build) == 130
    assert json.loads(capsys.readouterr().out)["exit_code"] == 130
    assert not list(project.glob("artifacts/sweeps/*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["target=a,b"], "no recipe is chosen"),
        (["+recipe=glob(nothing*)"], "nothing to build"),
        (["+recipe=plain", "hydra/launcher=nope"], "hydra/launcher"),
        (["+recipe=plain", "target=["], "cannot read the override"),
    ],
)
def test_what_cannot_be_swept(
    project: Path, build: Any, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["-m", *arguments], build=build) == 2
    assert message in capsys.readouterr().err
    assert not build.calls
    assert not list(project.glob("artifacts/sweeps/*"))


@pytest.mark.parametrize(
    "option",
    [
        "hydra.sweep.dir=x",
        "+hydra.job.env_set.X=1",
        "+hydra.callbacks.x.y=1",
        "hydra.searchpath=[file:///x]",
        "+hydra={verbose: true}",
        "+hydra.launcher.x={_target_: os.system}",
        "hydra/env=default",
    ],
)
def test_options_of_hydra_that_a_sweep_does_not_take(
    build: Any, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert main(["-m", "+recipe=plain", option], build=build) == 2
    assert "valid choices: hydra/launcher, hydra/sweeper, hydra.launcher.KEY" in capsys.readouterr().err
    assert not build.calls


def test_the_sweeper_is_the_users_choice(build: Any) -> None:
    options = ["hydra/launcher=basic", "hydra/sweeper=basic", "hydra.sweeper.max_batch_size=1"]
    assert main(["-m", "+recipe=plain", "dataset.samples=4,6", *options], build=build) == 0
    assert len(build.calls) == 2


def test_no_file_of_a_project_reaches_into_hydra(project: Path, build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANFBUILD_TEST", "untouched")
    seen = []

    def note(*arguments: Any, **keywords: Any) -> Any:
        seen.append(os.environ["ANFBUILD_TEST"])
        return build(*arguments, **keywords)

    env = project / "conf" / "hydra" / "env" / "default.yaml"
    env.parent.mkdir(parents=True)
    env.write_text("# @package _global_\nhydra: {job: {env_set: {ANFBUILD_TEST: set}}}\n")
    target = project / "conf" / "target" / "sm8650.yaml"
    target.write_text("# @package _global_\nhydra: {job: {env_set: {ANFBUILD_TEST: set}}}\n" + target.read_text())
    assert main(["-m", "+recipe=plain", "target=sm8650"], build=note) == 2
    target.write_text("".join(target.read_text().splitlines(keepends=True)[2:]))
    assert main(["-m", "+recipe=plain", "dataset.samples=4,6"], build=note) == 0
    assert seen == ["untouched"] * 2


@pytest.mark.parametrize("name", ["it's \\", '"a" [b]* {c}', "${oc.env:HOME} $x", "ü模 型"])
def test_a_project_may_lie_anywhere(
    project: Path, build: Any, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    place = tmp_path_factory.mktemp("any") / name
    shutil.copytree(project, place)
    monkeypatch.chdir(place)
    assert main(["-m", "+recipe=plain", "dataset.samples=4,102", "hydra.sweeper.max_batch_size=1"], build=build) == 1
    assert len(list((place / "artifacts" / "sweeps").glob("*/*/job.json"))) == 2
    assert main(["-m", "--resume", "latest"], build=dataclasses.replace(build, mended=True)) == 0


def test_what_hydra_cannot_be_configured_with_is_the_command_lines_fault(
    build: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["-m", "+recipe=plain", "hydra.sweeper.params={a: b}"], build=build) == 2
    assert "command line: Hydra cannot run this sweep" in capsys.readouterr().err


def test_values_that_need_quotes_reach_the_job(build: Any) -> None:
    overrides = [
        "model.inputs.x.shape=[1,3,8,8],[1,3,16,16]",
        "dataset.path='a, b'",
        "dataset.size=${evaluation.samples}",
    ]
    assert main(["-m", "+recipe=plain", *overrides], build=build) == 0
    assert [call["recipe"].config["model"]["inputs"]["x"]["shape"][3] for call in build.calls] == [8, 16]
    assert build.calls[0]["recipe"].config["dataset"]["path"] == "a, b"
    assert build.calls[0]["recipe"].config["dataset"]["size"] == 16
