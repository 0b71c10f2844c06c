"""The worker's bounds, on stand-ins for the interpreter that sleep, eat memory or die (POSIX: they are scripts)."""

from __future__ import annotations

import _thread
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from anfbuild import confined, worker
from anfbuild.errors import StepError

Interpreter = Callable[[str], None]

SLEEP_WITH_CHILD = """
import os, subprocess, pathlib, time
child = subprocess.Popen(["sleep", "60"])
pathlib.Path("PIDS").write_text(f"{os.getpid()} {child.pid}")
time.sleep(60)
"""


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Interpreter:
    """Puts a script in the place of the worker's interpreter, and temporary folders under `tmp_path`/temporary."""
    real = confined.sys.executable
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))

    def stand_in(code: str) -> None:
        script = tmp_path / "interpreter"
        script.write_text(f"#!{real}\n{code.replace('PIDS', str(tmp_path / 'pids'))}")
        script.chmod(0o755)
        monkeypatch.setattr(confined.sys, "executable", str(script))

    return stand_in


def run(*, timeout_s: float = 30.0, memory_gb: float = 1.0) -> dict[str, object]:
    with confined.private_folder("toy") as folder:
        return confined.run(folder, "toy", "compile", {}, name="toy", timeout_s=timeout_s, memory_gb=memory_gb)


def assert_nothing_left(tmp_path: Path) -> None:
    assert list((tmp_path / "temporary").iterdir()) == []
    pids = (tmp_path / "pids").read_text().split()
    for _ in range(100):  # the kernel takes a moment to end a killed child
        if not any(running(pid) for pid in pids):
            return
        time.sleep(0.05)
    pytest.fail("a killed worker or its child still runs")


def running(pid: str) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_worker_out_of_time_is_killed_with_its_children(interpreter: Interpreter, tmp_path: Path) -> None:
    interpreter(SLEEP_WITH_CHILD)
    with pytest.raises(StepError, match="did not finish to compile within 1 s"):
        run(timeout_s=1.0)
    assert_nothing_left(tmp_path)


def test_a_worker_out_of_memory_is_killed(interpreter: Interpreter, tmp_path: Path) -> None:
    interpreter("import time\neaten = bytearray(b'x') * 200_000_000\ntime.sleep(60)")
    with pytest.raises(StepError, match=r"more than 0\.1 GB of memory"):
        run(memory_gb=0.1)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_worker_of_an_interrupted_build_is_killed(interpreter: Interpreter, tmp_path: Path) -> None:
    interpreter(SLEEP_WITH_CHILD)
    stop = threading.Event()

    def interrupt() -> None:
        while not stop.wait(0.05):
            if (tmp_path / "pids").is_file() and (tmp_path / "pids").stat().st_size:
                _thread.interrupt_main()
                return

    watcher = threading.Thread(target=interrupt)
    watcher.start()
    gc.disable()  # an interruption that comes in a callback of the collector, as hypothesis has one, is lost
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        gc.enable()
        stop.set()
        watcher.join()
    assert_nothing_left(tmp_path)


def test_a_crash_is_told_with_the_signal_and_the_last_words(interpreter: Interpreter) -> None:
    interpreter("import os, sys\nprint('library: out of tiles', file=sys.stderr, flush=True)\nos.abort()")
    with pytest.raises(StepError, match="SIGABRT") as error:
        run()
    assert "library: out of tiles" in error.value.what


@pytest.mark.parametrize("response", ["", "not JSON", "[]"])
def test_an_end_without_a_response_is_an_error(interpreter: Interpreter, response: str) -> None:
    interpreter(f"open('response.json', 'w').write({response!r})")
    with pytest.raises(StepError, match="ended with code 0"):
        run()


def test_the_request_reaches_the_worker_and_the_response_comes_back(interpreter: Interpreter) -> None:
    interpreter("import json\njson.dump(json.load(open('request.json')), open('response.json', 'w'))")
    assert run() == {"task": "compile"}


@pytest.mark.skipif(sys.platform != "linux", reason="a worker is bound to its parent on Linux alone")
def test_a_worker_whose_parent_is_gone_ends_before_it_imports_anything(tmp_path: Path) -> None:
    (tmp_path / worker.REQUEST).write_text('{"task": "none"}')
    command = [sys.executable, "-P", "-X", "importtime", worker.__file__]
    orphan, kept = (
        subprocess.run(
            [*command, str(pid), "anfbuild.qnn.session"],
            cwd=tmp_path,
            env=dict(os.environ),
            capture_output=True,
            check=False,
        )
        for pid in (os.getpid() + 1, os.getpid())
    )
    assert orphan.returncode == 1
    assert b"anfbuild" not in orphan.stderr
    assert b"anfbuild.qnn.process" in kept.stderr


@pytest.fixture
def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    return child.pid


@pytest.mark.skipif(sys.platform == "win32", reason="whether a process runs is asked with a signal")
def test_what_killed_builds_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dead_pid: int
) -> None:
    temporary, elsewhere = tmp_path / "temporary", tmp_path / "elsewhere"
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    temporary.mkdir()
    with confined.private_folder("toy") as first:
        own = first.name.removesuffix(f"{os.getpid()}-{first.name.rpartition('-')[2]}")
    orphan = temporary / f"{own}{dead_pid}-abc"
    kept = [f"{own}{os.getpid()}-abc", f"{own}{os.getppid()}-abc", f"anfbuild-{dead_pid}-abc"]
    kept += [f"{own}x-abc", f"{own}{10**30}-abc", f"anfbuild-toy-1-{dead_pid}-abc"]
    for folder in (orphan, elsewhere, *(temporary / name for name in kept)):
        folder.mkdir(parents=True)
        (folder / "model.bin").write_bytes(b"0")
    (orphan / "link").symlink_to(elsewhere)
    link = temporary / f"{own}{dead_pid}-link"
    link.symlink_to(elsewhere)
    file = temporary / f"{own}{dead_pid}-file"
    file.touch()
    with confined.private_folder("toy") as mine:
        assert mine.name.startswith(f"{own}{os.getpid()}-")
        assert {path.name for path in temporary.iterdir()} == {mine.name, link.name, file.name, *kept}
    assert (elsewhere / "model.bin").exists()
