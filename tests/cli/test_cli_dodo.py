"""The same graph under doit's own commands, called in a project's folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import anfbuild
from anfbuild.steps import GRAPH

PACKAGE = Path(anfbuild.__file__).parent
DODO = next(path for path in (PACKAGE / "_data" / "dodo.py", PACKAGE.parent / "dodo.py") if path.exists())

pytestmark = pytest.mark.usefixtures("project")


def doit(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "doit", "-f", str(DODO), *arguments],
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), "ANFBUILD_CACHE": str(Path("store").absolute())},
        capture_output=True,
        text=True,
        check=False,
    )


def assert_no_record(project: Path) -> None:
    """doit keeps no record: not in the project, and not beside dodo.py."""
    assert not [path for folder in (project, DODO.parent) for path in folder.glob(".doit*")]


def test_list_shows_the_steps(project: Path) -> None:
    ran = doit("list", "+recipe=ocr_detect")
    assert ran.returncode == 0, ran.stderr
    assert [line.split()[0] for line in ran.stdout.splitlines()] == sorted(set(GRAPH) - {"diagnose", "lint"})
    assert "Turn statistics into encodings" in ran.stdout
    assert_no_record(project)


def test_list_stops_at_the_goal() -> None:
    ran = doit("list", "+recipe=ocr_detect", "goal=convert")
    assert [line.split()[0] for line in ran.stdout.splitlines()] == ["convert", "fetch"]


def test_list_shows_the_steps_of_each_component(project: Path) -> None:
    ran = doit("list", "+recipe=hand_gesture", "goal=convert")
    assert ran.returncode == 0, ran.stderr
    names = {f"{step}[{component}]" for step in ("fetch", "convert") for component in ("landmark", "recrop")}
    assert {line.split()[0] for line in ran.stdout.splitlines()} == names | {"convert"}
    ran = doit("info", "convert[recrop]", "+recipe=hand_gesture")
    assert " - fetch[recrop]" in ran.stdout
    assert_no_record(project)


def test_info_tells_what_a_step_needs(project: Path) -> None:
    ran = doit("info", "calibrate", "+recipe=ocr_detect", "target=sm8550")
    assert ran.stderr == ""
    assert "status     : run" in ran.stdout
    assert " - condition\n - convert\n - dataset" in ran.stdout
    assert_no_record(project)


def test_clean_removes_the_exported_builds_of_the_recipe_and_nothing_else(project: Path) -> None:
    for name in ("artifacts/builds/ocr_detect/abc", "artifacts/builds/plain", "artifacts/store/cas", "store/cas"):
        (project / name).mkdir(parents=True)
        (project / name / "file").touch()
    ran = doit("clean", "+recipe=ocr_detect")
    assert ran.returncode == 0, ran.stderr
    left = {path.relative_to(project).as_posix() for path in project.rglob("file")}
    assert left == {"artifacts/builds/plain/file", "artifacts/store/cas/file", "store/cas/file"}
    assert_no_record(project)


@pytest.mark.parametrize("arguments", [["forget"], ["forget", "convert"], ["forget", "--all"]])
def test_forget_has_nothing_to_forget(project: Path, arguments: list[str]) -> None:
    ran = doit(*arguments, "+recipe=ocr_detect")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert_no_record(project)


def test_a_step_can_be_run_and_says_why_it_fails(project: Path) -> None:
    ran = doit("run", "fetch", "+recipe=plain", "task=text_detection", "dataset.path=.")
    assert ran.returncode != 0
    assert "model.onnx does not exist" in ran.stderr
    assert "conf/source/made.yaml:2 (source.path)" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert_no_record(project)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["+recipe=nope"], 2, "there is no recipe 'nope'"),
        ([], 2, "no recipe is chosen"),
        (["+recipe=ocr_detect", "target.soc_model=5"], 2, "unknown SoC 5"),
        (["+recipe=ocr_detect", "versions.onnxruntime='>=99'"], 4, "onnxruntime >=99 is required"),
    ],
)
def test_errors_are_anfbuilds_own(arguments: list[str], code: int, message: str) -> None:
    ran = doit("list", *arguments)
    assert ran.returncode == code
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
