"""why, reproduce and the lock, on a tiny model and the real steps."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from projects import Project

from anfbuild.engine.store import Store

HEAVY = """\
import atexit, sys
heavy = {"numpy", "onnx", "onnxruntime", "doit"}
atexit.register(lambda: print("heavy:", sorted(heavy & set(sys.modules)), file=sys.stderr))
"""


def test_why_names_what_changed_and_imports_nothing_heavy(tiny: Project, tmp_path: Path) -> None:
    assert tiny.run("+recipe=mine").code == 0
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text(HEAVY)
    hook = str(tmp_path / "hook")
    same = tiny.run("why", "report", "+recipe=mine", PYTHONPATH=hook)
    assert same.out.startswith("report is up to date: made ")
    assert "heavy: []" in same.err
    ran = tiny.run("why", "calibrate", "+recipe=mine", "dataset.samples=3", PYTHONPATH=hook)
    assert (ran.code, ran.out.splitlines()[0]) == (
        0,
        "calibrate reruns if dataset's output changes: dataset.samples 2 -> 3",
    )
    assert "heavy: []" in ran.err
    told = tiny.run("why", "quantize", "+recipe=mine", "calibration=minmax", "--json").document
    assert (told["up_to_date"], told["step"]) == (False, "quantize")
    assert told["reasons"] == [
        {"step": "quantize", "kind": "changed", "field": "calibration.estimator", "old": "mse", "new": "minmax"}
    ]


def test_a_build_is_reproduced_and_a_doctored_one_is_not(alone: Project) -> None:
    ran = alone.run("reproduce", "+recipe=mine", "--json")
    assert ran.code == 0, ran.err
    assert {step["verdict"] for step in ran.document["steps"]} == {"same"}
    assert len(ran.document["steps"]) > 10
    assert list((alone.folder / "artifacts").glob("reproduce-*")) == []

    store = Store(alone.store)
    (record,) = store.builds("mine")
    key = record["steps"]["convert"]
    result, meta = store.lookup(key), store.meta(key)
    assert result is not None
    folder = alone.folder / "doctored"
    store.copy_out(result, "", folder)
    document = json.loads((folder / "convert.json").read_text())
    (folder / "convert.json").write_text(json.dumps({**document, "macs": -1}))
    store.commit(key, folder, meta)
    ran = alone.run("reproduce", "+recipe=mine", "goal=convert", "--keep")
    assert ran.code == 3, ran.err
    assert "not reproduced: convert is the first that differs (its inputs are the same)" in ran.out
    assert "convert.json /macs -1, then 27648" in ran.out
    (kept,) = (alone.folder / "artifacts").glob("reproduce-*")
    assert (kept / "store").is_dir()


def test_what_a_killed_reproduction_left_goes_and_what_was_kept_stays(tiny: Project) -> None:
    goal = ("+recipe=mine", "goal=fetch")
    assert tiny.run("reproduce", *goal, "--keep").code == 0
    (kept,) = (tiny.folder / "artifacts").glob("reproduce-*")
    process = tiny.start("reproduce", "+recipe=mine")
    assert process.stdout is not None
    assert any(line.startswith("building again") for line in process.stdout)
    assert len(list((tiny.folder / "artifacts").glob("reproduce-*"))) == 2
    assert tiny.run("reproduce", *goal).code == 0
    assert len(list((tiny.folder / "artifacts").glob("reproduce-*"))) == 2  # one is in use
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    assert tiny.run("reproduce", *goal).code == 0
    assert list((tiny.folder / "artifacts").glob("reproduce-*")) == [kept]


@pytest.mark.skipif(os.name == "nt", reason="there are no process groups to signal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_reproduction_leaves_nothing(tiny: Project, number: signal.Signals) -> None:
    assert tiny.run("+recipe=mine").code == 0
    process = tiny.start("reproduce", "+recipe=mine")
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("fetch") and "cached" not in line:
            break
    os.kill(process.pid, number)  # not the whole group: the second build has to be ended by the first
    _, err = process.communicate(timeout=60)  # which waits for both, who share the pipe
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert list((tiny.folder / "artifacts").glob("reproduce-*")) == []


def test_a_lock_holds_single_builds_and_sweeps(tiny: Project) -> None:
    assert tiny.run("+recipe=mine", "--lock").code == 0
    assert tiny.run("+recipe=mine", "--locked", "--json").steps_run == []
    ran = tiny.run("-m", "+recipe=glob(mi*)", "dataset.samples=2,3", "--locked", "--json", "--junit=out.xml")
    jobs = ran.document["jobs"]
    assert [job["exit_code"] for job in jobs] == [0, 2]
    assert "dataset.samples locked 2, asked 3 (command line)" in jobs[1]["error"]["what"]
    assert (tiny.folder / "out.xml").read_text().count("<testsuite ") == 2


def test_results_tell_the_class_of_their_cpu(tiny: Project) -> None:
    key = tiny.run("+recipe=mine", "--json").document["key"]
    host = Store(tiny.store).meta(key)["host"]
    assert host["cpu_class"]
    assert host["python"] == sys.version.split()[0]
