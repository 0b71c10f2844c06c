"""Interrupted and killed builds, and stores that cannot be used: what is finished is kept."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from projects import Project

from anfbuild import qnn

compiles = pytest.mark.skipif(qnn.unavailable() is not None, reason=str(qnn.unavailable()))


@pytest.mark.skipif(os.name == "nt", reason="there are no process groups to signal")
@pytest.mark.parametrize(
    ("step", "number"),
    [
        ("convert", signal.SIGINT),
        pytest.param("prepare", signal.SIGINT, marks=compiles),
        pytest.param("emulate", signal.SIGINT, marks=compiles),
        ("calibrate", signal.SIGINT),
        pytest.param("emulate", signal.SIGTERM, marks=compiles),
        ("fetch", signal.SIGKILL),
        ("convert", signal.SIGKILL),
        pytest.param("prepare", signal.SIGKILL, marks=compiles),
        pytest.param("emulate", signal.SIGKILL, marks=compiles),
    ],
)
def test_the_next_run_goes_on_from_the_last_finished_step(alone: Project, step: str, number: signal.Signals) -> None:
    code, ended, err = alone.stop_at(step, number, "+recipe=mine")
    if number in (signal.SIGINT, signal.SIGTERM):
        assert code == 130, err
        assert "run the same command again to go on" in err
        assert "Traceback" not in err
    else:
        assert code == -number
    assert_no_worker_is_left(alone.store)

    resumed = alone.run("+recipe=mine", "--json")
    assert resumed.code == 0, resumed.err
    assert not ended & set(resumed.steps_run)
    assert resumed.steps_run  # the rest of the build was still to be done
    assert list((alone.store / "tmp").iterdir()) == []
    assert alone.run("+recipe=mine", "--json").steps_run == []


def assert_no_worker_is_left(store: Path) -> None:
    """No process that the build started outlives it; they are known by the store in their environment."""
    deadline = time.monotonic() + 10
    mark = f"ANFBUILD_CACHE={store}\0".encode()
    while left := [entry for entry in Path("/proc").glob("[0-9]*") if mark in _environment(entry)]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def test_a_store_that_is_a_file(tiny: Project, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    ran = Project(tiny.folder, tmp_path / "file").run("+recipe=mine")
    assert ran.code == 1
    for word in (str(tmp_path / "file"), "store", "Set ANFBUILD_CACHE to a folder"):
        assert word in ran.err
    assert "Traceback" not in ran.err
    assert (tmp_path / "file").read_text() == "no folder"


def test_a_store_that_cannot_be_written_still_serves(alone: Project) -> None:
    # A superuser is stopped by no mode; without these two capabilities it is.
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    if prefix and shutil.which("setpriv") is None:
        pytest.skip("no setpriv, which a superuser needs to give up rights")
    assert alone.run("+recipe=mine").code == 0
    folders = [alone.store, *(path for path in alone.store.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        served = alone.run("+recipe=mine", "--json", prefix=prefix)
        changed = alone.run("+recipe=mine", "calibration=minmax", prefix=prefix)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert served.code == 0, served.err
    assert served.steps_run == []
    assert changed.code == 1
    for word in (str(alone.store), "Permission denied", "rights"):
        assert word in changed.err
    assert "Traceback" not in changed.err
