from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console as RichConsole

import anfbuild
from anfbuild.cli.console import Console
from anfbuild.cli.sweep import state
from anfbuild.cli.sweep.progress import Progress, line, live_table
from anfbuild.cli.sweep.state import Reporter, State
from anfbuild.engine.run import Event


def test_a_line_when_a_job_starts_and_when_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    earlier = tmp_path / "000"
    earlier.mkdir()
    Reporter(earlier, 0, ("a=0",)).end(state.DONE, 0)
    (tmp_path / "001").mkdir()
    with Progress(tmp_path, 3, Console(), 1) as progress:
        reporter = Reporter(tmp_path / "001", 1, ("a=1",))
        reporter.tell(Event("start", "fetch"))
        progress._look()
        reporter.tell(Event("done", "fetch", None, 1.0))
        reporter.end(state.FAILED, 2)
        progress._look()
        progress._look()
    first, second = capsys.readouterr().out.splitlines()
    assert first == "job 1 started: a=1"
    assert second.startswith("job 1 failed 0.")
    assert second.endswith(" s, exit 2 (2/3): a=1")


def test_what_is_said_of_a_job() -> None:
    assert line(State(3, ("a=1", "b=2"), state.DONE, seconds=12.34), 5, 8) == "job 3 done 12.3 s (5/8): a=1 b=2"
    assert line(State(3, (), state.INTERRUPTED), 5, None) == "job 3 interrupted (5/?): "


def test_the_state_is_a_whole_document_at_any_time(tmp_path: Path) -> None:
    assert state.read(tmp_path) is None
    reporter = Reporter(tmp_path, 4, ("a=1",))
    assert state.read(tmp_path) == State(4, ("a=1",))
    reporter.tell(Event("start", "calibrate"))
    found = state.read(tmp_path)
    assert found is not None
    assert (found.step, found.event, found.ended) == ("calibrate", "start", False)
    (tmp_path / state.FILE).write_text(json.dumps({"job": 1, "overrides": [], "more": 1}))
    assert state.read(tmp_path) is None


def test_the_table_shows_those_that_run_before_those_that_ended() -> None:
    states = [State(number, (f"a={number}",), state.DONE, seconds=1) for number in range(30)]
    states.append(State(30, ("a=[red]x",), step="calibrate", event="start", seconds=2.5))
    text = io.StringIO()
    RichConsole(file=text, width=100).print(live_table(states, 30, 40))
    assert "30 of 40 jobs finished" in text.getvalue()
    assert "a=[red]x" in text.getvalue()
    assert "calibrate" in text.getvalue()
    assert "a=0 " not in text.getvalue()


SWEEP = """
import sys, time
sys.path.insert(0, sys.argv.pop(1))
from anfbuild.cli import main
from conftest import Build
class Slow(Build):
    def __call__(self, *a, **k):
        outcome = super().__call__(*a, **k)
        time.sleep(0.6)
        return outcome
sys.exit(main(build=Slow()))
"""


def test_on_a_terminal_there_is_a_table_that_moves(project: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SWEEP, str(Path(__file__).parent), "-m", "+recipe=plain", "dataset.samples=4,6"],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(Path(anfbuild.__file__).parents[1]), "TERM": "xterm", "COLUMNS": "120"},
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # how Linux says that the other end is closed
        pass
    finally:
        os.close(ours)
    assert process.wait(timeout=60) == 0
    assert b"of 2 jobs finished" in shown
    assert b"building" in shown
    assert b"job 0 started" not in shown
    assert shown.rstrip().splitlines()[-1].startswith(b"results: ")
