"""The JUnit report: a case a step and a limit, counts that add up, and nothing that XML cannot hold."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest

from anfbuild.cli import junit, main

pytestmark = pytest.mark.usefixtures("project")

KINDS = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def read(path: Path) -> Xml.Element:
    """The report, checked as readers of JUnit do: its shape, and that its counts add up."""
    root = Xml.fromstring(path.read_bytes())
    assert root.tag == "testsuites"
    for suite in root:
        assert suite.tag == "testsuite"
        assert {case.tag for case in suite} <= {"testcase"}
        for case in suite:
            assert case.get("name")
            assert case.get("classname")
            assert float(case.get("time", "x")) >= 0
            assert [part.tag for part in case] in ([], ["failure"], ["error"], ["skipped"], ["system-out"])
    for element in (root, *root):
        cases = list(element.iter("testcase"))
        assert int(element.get("tests", "x")) == len(cases)
        for attribute, kind in KINDS.items():
            assert int(element.get(attribute, "x")) == sum(case.find(kind) is not None for case in cases)
    return root


def cases(root: Xml.Element) -> dict[str, str]:
    """Case -> what became of it."""
    return {f"{case.get('classname')} {case.get('name')}": case[0].tag for case in root.iter("testcase")}


def told(**changes: Any) -> dict[str, Any]:
    ended = [
        {"step": "fetch", "key": "k1", "hit": True, "seconds": None},
        {"step": "report", "key": "k2", "hit": False, "seconds": 1.5},
    ]
    return {"planned": ["fetch", "report"], "steps": ended, "failed": None, "error": None, "results": None, **changes}


def gate(name: str, passed: bool | None, **more: Any) -> dict[str, Any]:
    return {"name": name, "direction": "max", "limit": 3, "unit": "ms", "value": 5, "passed": passed, **more}


def test_steps_and_gates_of_a_build(tmp_path: Path) -> None:
    gates = [gate("latency_ms", False), gate("spill_mb", True), gate("accuracy", None, value=None, reason="scores 0")]
    suite = junit.suite("det", told(results={"gates": gates}, error={"what": "1 gate missed"}))
    junit.write(tmp_path / "out.xml", [suite])
    root = read(tmp_path / "out.xml")
    assert cases(root) == {
        "det.steps fetch": "system-out",
        "det.steps report": "system-out",
        "det.gates latency_ms max": "failure",
        "det.gates spill_mb max": "system-out",
        "det.gates accuracy max": "skipped",
    }
    assert [part.text for part in root.iter("system-out")][:2] == ["cached, key k1", "built, key k2"]
    assert [part.get("message") for part in root.iter("failure")] == ["latency_ms is 5 ms, limit max 3"]
    assert [part.get("message") for part in root.iter("skipped")] == ["scores 0"]
    assert root.get("time") == "1.500"


def test_a_step_that_failed_and_what_was_not_reached(project: Path, build: Any) -> None:
    assert main(["+recipe=plain", "dataset.samples=104", "--junit", "deep/out.xml"], build=build) == 1
    root = read(project / "deep" / "out.xml")
    assert cases(root) == {
        "plain.steps words": "system-out",
        "plain.steps count": "failure",
        "plain.steps shout": "skipped",
    }
    (failure,) = root.iter("failure")
    assert failure.get("message") == "the \\x1b voice\\ud800 broke & <fell>"
    assert "node Conv_3" in (failure.text or "")
    assert [path.name for path in (project / "deep").iterdir()] == ["out.xml"]


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["+recipe=nope"], 2, "there is no recipe 'nope'"),
        (["+recipe=plain", "dataset.samples=101"], 1, "unexpected ZeroDivisionError: by zero"),
        (["+recipe=plain", "dataset.samples=102"], 1, "the step broke"),
        (["+recipe=plain", "dataset.samples=103"], 3, "accuracy_drop is 0.2"),
        (["-m", "+recipe=plain", "target=["], 2, "cannot read the override 'target=['"),
    ],
)
def test_what_fails_outside_of_the_steps_is_told_too(
    project: Path, build: Any, arguments: list[str], code: int, what: str
) -> None:
    assert main([*arguments, "--junit=out.xml"], build=build) == code
    root = read(project / "out.xml")
    assert [case.get("name") for case in root.iter("testcase")] == ["recipe"]
    assert [part.get("message") for part in root.iter("error")] == [what]


def test_each_job_of_a_sweep_has_a_suite(project: Path, build: Any) -> None:
    assert main(["-m", "+recipe=plain", "dataset.samples=4,104,0", "--junit", "out.xml"], build=build) == 2
    root = read(project / "out.xml")
    assert [(suite.get("name"), suite.get("failures"), suite.get("errors")) for suite in root] == [
        ("000-dataset.samples_4", "0", "0"),
        ("001-dataset.samples_104", "1", "0"),
        ("002-dataset.samples_0", "0", "1"),
    ]


def test_a_place_that_takes_no_report_is_refused_before_anything_is_built(
    project: Path, build: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(project / "pipe")
    for file, what in (
        ("recipes", "it is no file"),
        ("pipe", "it is no file"),
        ("/dev/null", "it is no file"),
        ("x\0y", "null"),
        ("recipes/plain.yaml/x.xml", "--junit recipes/plain.yaml/x.xml"),
    ):
        assert main(["+recipe=plain", "--junit", file], build=build) == 2
        assert what in capsys.readouterr().err
    assert main(["+recipe=plain", "--junit"], build=build) == 2
    assert not build.calls
    assert (project / "recipes" / "plain.yaml").is_file()
    assert (project / "pipe").is_fifo()


def test_a_link_to_the_report_stays_one(project: Path, build: Any) -> None:
    (project / "link.xml").symlink_to("real.xml")
    assert main(["+recipe=plain", "--junit", "link.xml"], build=build) == 0
    assert (project / "link.xml").is_symlink()
    read(project / "real.xml")
