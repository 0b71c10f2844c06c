"""What a cache owes its users, case by case. Some are tested where they can be told to the letter:

- an input that changes while a step runs, also when it is changed back, is refused: `test_engine_run`,
  `test_a_file_that_changes_while_a_step_reads_it_is_refused`
- truncated, empty, flipped and swapped entries and blobs are put aside and built again: `test_engine_run`, `damaged`
- interrupted and killed builds go on from the last finished step: `test_end_to_end_interruption`
- a result does not depend on folder, user, time or locale, and steps read what they declare: `test_steps_deterministic`
- killed builders at random moments, full and read-only disks: `test_end_to_end_crash`
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from PIL import Image
from projects import Project
from test_end_to_end_host import hidden_compiler

from anfbuild import qnn

ROOT = Path(__file__).parents[2]
EXPORTS = ("mine.anf", "results.json", "report.html", "encodings.json", "placement.csv")


def exported(project: Project) -> dict[str, bytes]:
    folder = project.folder / "artifacts" / "builds" / "mine" / "latest"
    return {name: (folder / name).read_bytes() for name in EXPORTS if (folder / name).exists()}


def one_pixel(project: Project) -> None:
    path = project.folder / "data" / "0.png"
    image = Image.open(path).copy()
    image.putpixel((0, 0), tuple(255 - value for value in image.getpixel((0, 0))))
    image.save(path)


def one_weight(project: Project) -> None:
    path = project.folder / "models" / "mine.onnx"
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = b"\0\0\0\x3f" + model.graph.initializer[0].raw_data[4:]
    onnx.save(model, path)


@pytest.mark.parametrize(("change", "first"), [(one_pixel, "dataset"), (one_weight, "fetch")])
def test_changed_data_never_gives_the_old_result(
    alone: Project, tmp_path: Path, change: Callable[[Project], None], first: str
) -> None:
    assert alone.run("+recipe=mine").code == 0
    change(alone)
    again = alone.run("+recipe=mine", "--json")
    assert again.steps_run[0] == first
    clean = Project(alone.folder, tmp_path / "a clean store")
    made = exported(alone)
    assert clean.run("+recipe=mine").code == 0
    assert exported(clean) == made


def doc_string(project: Project) -> None:
    path = project.folder / "models" / "mine.onnx"
    model = onnx.load(path)
    model.doc_string = "said anew"
    model.producer_version = "2"
    onnx.save(model, path)


def a_note(project: Project) -> None:
    (project.folder / "data" / "README").write_text("no image", "utf-8")


@pytest.mark.parametrize(
    ("change", "run"), [(doc_string, {"fetch", "convert", "package", "report"}), (a_note, {"dataset"})]
)
def test_a_change_that_a_step_does_not_hand_on_ends_there(
    alone: Project, change: Callable[[Project], None], run: set[str]
) -> None:
    assert alone.run("+recipe=mine").code == 0
    change(alone)
    assert set(alone.run("+recipe=mine", "--json").steps_run) == run


def test_who_where_and_when_change_no_key(tiny: Project, tmp_path: Path) -> None:
    first = tiny.run("+recipe=mine", "--json").document["steps"]
    keys = {step["step"]: step["key"] for step in first}
    for name in ("anfbuild", "conf", "recipes"):
        shutil.copytree(ROOT / name, tmp_path / "check out" / name, ignore=shutil.ignore_patterns("__pycache__"))
    moved = Project(tmp_path / "moved away", tiny.store)
    shutil.copytree(tiny.folder, moved.folder, ignore=shutil.ignore_patterns("artifacts"))
    for project, prefix, variables in (
        (tiny, (), {"USER": "other", "LOGNAME": "other", "HOME": str(tmp_path)}),
        (tiny, (), {"TZ": "Pacific/Kiritimati", "LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}),
        (tiny, ("sh", "-c", 'umask 077; exec "$@"', "sh"), {"PYTHONHASHSEED": "7", "PYTHONOPTIMIZE": "2"}),
        (moved, (), {"PYTHONPATH": str(tmp_path / "check out")}),
    ):
        ran = project.run("+recipe=mine", "--json", prefix=prefix, **variables)
        assert ran.code == 0, ran.err
        assert {step["step"]: step["key"] for step in ran.document["steps"]} == keys
        assert ran.steps_run == []


def test_a_failure_is_never_cached_and_never_exits_0(alone: Project) -> None:
    model = alone.folder / "models" / "mine.onnx"
    good = model.read_bytes()
    model.write_bytes(b"no model")
    for _ in range(2):
        ran = alone.run("+recipe=mine", "--json")
        assert (ran.code, ran.document["exit_code"]) == (1, 1)
        assert "convert" in ran.err
    sweep = alone.run("-m", "+recipe=mine", "calibration=mse,minmax", "--json")
    assert (sweep.code, [job["exit_code"] for job in sweep.document["jobs"]]) == (1, [1, 1])
    model.write_bytes(good)
    assert alone.run("+recipe=mine").code == 0


def test_a_missed_gate_is_missed_again_though_nothing_runs(alone: Project) -> None:
    missed = ["+recipe=mine", "+gates.accuracy={min: 0.5}", "--json"]
    assert alone.run(*missed).code == 3
    again = alone.run(*missed)
    assert (again.code, again.steps_run) == (3, [])
    assert alone.run("+recipe=mine").code == 0


def test_jobs_at_the_same_time_do_not_overwrite_each_other(alone: Project) -> None:
    words = ["-m", "+recipe=mine", "calibration=mse,minmax", "quantization=int8,int8_per_channel", "--json"]
    sweeps = [alone.start(*words) for _ in range(2)]
    said = [process.communicate(timeout=300) for process in sweeps]
    assert [process.returncode for process in sweeps] == [0, 0], said
    for out, _ in said:
        jobs = json.loads(out)["jobs"]
        assert len({job["folder"] for job in jobs}) == 4
        for job in jobs:
            found = job["results"]
            assert f"calibration={found['calibration']['estimator']}" in str(job["overrides"])
            assert f"quantization={found['quantization']}" in str(job["overrides"])
    (one, _), (other, _) = said
    keys = [[job["key"] for job in json.loads(out)["jobs"]] for out in (one, other)]
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == 4


def test_eight_builds_at_once_build_each_step_once_and_give_the_same(alone: Project) -> None:
    builds = [alone.start("+recipe=mine", "--json") for _ in range(8)]
    said = [process.communicate(timeout=300) for process in builds]
    assert [process.returncode for process in builds] == [0] * 8, said
    documents = [json.loads(out) for out, _ in said]
    ran = [step["step"] for document in documents for step in document["steps"] if not step["hit"]]
    assert sorted(ran) == sorted(step["step"] for step in documents[0]["steps"])
    assert all(document["results"] == documents[0]["results"] for document in documents)


@pytest.mark.skipif(qnn.unavailable() is not None, reason=str(qnn.unavailable()))
def test_the_waiter_of_a_killed_builder_takes_over(alone: Project) -> None:
    builder = alone.start("+recipe=mine")
    _read_until(builder, ["prepare", "..."])
    os.killpg(builder.pid, signal.SIGSTOP)  # it holds the lock for as long as it takes
    waiter = alone.start("+recipe=mine")
    _read_until(waiter, ["prepare", "waiting", "for", "another", "build"])
    os.killpg(builder.pid, signal.SIGKILL)
    rest, err = waiter.communicate(timeout=120)
    builder.communicate(timeout=60)
    assert waiter.returncode == 0, err
    assert ["prepare", "..."] in [line.split() for line in rest.splitlines()]


def _read_until(process: subprocess.Popen[str], words: list[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.split() == words:
            return
    pytest.fail(f"{words} was never said")


def flip(blob: Path) -> None:
    blob.chmod(0o644)
    blob.write_bytes(b"x" * blob.stat().st_size)


@pytest.mark.parametrize("damage", [flip, Path.unlink])
def test_damaged_and_evicted_bytes_are_built_again(alone: Project, damage: Callable[[Path], None]) -> None:
    assert alone.run("+recipe=mine").code == 0
    good = exported(alone)
    for blob in [path for path in (alone.store / "cas").rglob("*") if path.is_file()]:
        damage(blob)
    again = alone.run("+recipe=mine", "--json")
    assert again.code == 0, again.err
    assert exported(alone) == good


def test_what_a_host_cannot_do_is_not_taken_for_what_another_cannot(alone: Project, tmp_path: Path) -> None:
    for machine in ("riscv64", "ppc64le"):
        (tmp_path / machine).mkdir()
        hidden = hidden_compiler(tmp_path / machine, machine=machine)
        ran = alone.run("+recipe=mine", "--json", PYTHONPATH=hidden)
        assert ran.code == 0, ran.err
        assert ran.document["results"]["reasons"]["/placement/htp"].endswith(f"on {machine}")
    assert not {"convert", "calibrate", "quantize"} & set(ran.steps_run)


def test_a_dead_remote_is_told_and_changes_nothing(alone: Project, tmp_path: Path) -> None:
    assert alone.run("+recipe=mine").code == 0
    with_remote = Project(alone.folder, tmp_path / "another store")
    before = exported(alone)
    ran = with_remote.run("+recipe=mine", ANFBUILD_REMOTE="http://127.0.0.1:9")
    assert ran.code == 0, ran.err
    assert ran.err.count("127.0.0.1:9") == 1
    assert exported(alone) == before
