from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import anfbuild
from anfbuild.cli import main

ROOT = Path(anfbuild.__file__).parents[1]

pytestmark = pytest.mark.usefixtures("project")


def python(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        encoding=variables.get("PYTHONIOENCODING", "utf-8"),
        check=False,
    )


@pytest.mark.parametrize("option", ["--help", "-h", "--version"])
def test_help_and_version_import_nothing_heavy(option: str) -> None:
    code = f"import sys; from anfbuild.cli import main; assert main(['{option}']) == 0; print(sorted(sys.modules))"
    run = python("-c", code)
    assert run.returncode == 0, run.stderr
    for module in ("hydra", "omegaconf", "numpy", "onnx", "doit", "rich", "yaml"):
        assert f"'{module}'" not in run.stdout


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    for word in ("anfbuild +recipe=ocr_detect", "-m", "goal=", "artifacts/builds", "exit codes", "$ANFBUILD_CACHE"):
        assert word in text
    assert max(map(len, text.splitlines())) <= 120


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"anfbuild {anfbuild.__version__}\n"


def test_a_build(project: Path, build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+recipe=plain", "dataset.samples=4"], build=build) == 0
    (call,) = build.calls
    assert call["recipe"].config["dataset"]["samples"] == 4
    assert (call["project"], call["latest"], call["folder"]) == (project, True, None)
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "building   ..."
    assert out[-2:] == ["accuracy  0.89  [f1]", "latency   4 ms  predicted"]


def test_json_is_all_there_is_on_stdout(build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+recipe=plain", "--json"], build=build) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["results"]["accuracy"]["metric"] == "f1"
    assert "noise of a library" in captured.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["dataset.samples=100"], 130, "run the same command again to go on"),
        (["dataset.samples=101"], 1, "unexpected ZeroDivisionError: by zero (run again with --debug)"),
        (["dataset.samples=102"], 1, "node Conv_3: the step broke"),
        (["dataset.samples=103"], 3, "accuracy_drop is 0.2"),
        (["dataset.samples=0"], 2, "must be at least 1"),
        (["target=nope"], 2, "there is no target 'nope'"),
        (["--jsno"], 2, "did you mean '--json'?"),
        (["--samples=3"], 2, "there is no option '--samples'"),
        (["--cfg", "hydra"], 2, "valid choices: job"),
        (["--cfg"], 2, "valid choices: job"),
        (["plain"], 2, "write +recipe=plain"),
    ],
)
def test_exit_codes(
    build: Any, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(["+recipe=plain", *arguments], build=build) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err

    assert main(["+recipe=plain", "--json", *arguments], build=build) == code
    document = json.loads(capsys.readouterr().out)
    assert document["exit_code"] == code


def test_debug_shows_the_traceback(build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+recipe=plain", "dataset.samples=101", "--debug"], build=build) == 1
    assert 'raise ZeroDivisionError("by zero")' in capsys.readouterr().err


def test_debug_shows_what_is_behind_an_outcomes_error(build: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+recipe=plain", "dataset.samples=103", "--debug"], build=build) == 3
    assert "anfbuild.errors.GateError: accuracy_drop is 0.2" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--cfg", "job"], ["--cfg=job"], ["-c", "job"]])
def test_the_composed_recipe(build: Any, capsys: pytest.CaptureFixture[str], option: list[str]) -> None:
    assert main([*option, "+recipe=plain", "dataset.samples=4"], build=build) == 0
    assert not build.calls
    config = yaml.safe_load(capsys.readouterr().out)
    assert main([*option, "+recipe=plain", "dataset.samples=4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == config
    assert config["dataset"]["samples"] == 4
    assert config["target"]["soc_model"] == 57


def test_a_reader_that_goes_away() -> None:
    code = "import sys; from anfbuild.cli import main; sys.exit(main(['+recipe=plain', '--cfg', 'job']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()  # long before anything is printed
    assert process.wait() == 0
    assert process.stderr.read() == ""
    process.stderr.close()


def test_as_a_module() -> None:
    run = python("-m", "anfbuild", "+recipe=nope")
    assert run.returncode == 2
    assert run.stdout == ""
    assert run.stderr.startswith("anfbuild: command line: there is no recipe 'nope'")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_any_encoding_of_the_terminal(project: Path, encoding: str) -> None:
    (project / "recipes" / "名.yaml").write_text("dataset: {sample: 1}\n")
    run = python("-m", "anfbuild", "+recipe='–'", PYTHONIOENCODING=encoding)
    assert run.returncode == 2
    assert "there is no recipe" in run.stderr
    assert "Traceback" not in run.stderr
    run = python("-m", "anfbuild", "+recipe='–'", "--json", PYTHONIOENCODING=encoding)
    assert json.loads(run.stdout)["error"]["choices"][-1] == "text_retrieval"


BUILD = """
import sys
from anfbuild.cli import main
from anfbuild.engine.run import Event
from anfbuild.errors import GateError
class Outcome:
    exit_code, key, folder, results, summary = 3, "k", None, {}, [("a", "b", "c")]
    error, steps, planned, failed = GateError("a gate"), [], [], None
    def to_json(self): return {}
def build(recipe, project, *, latest, folder, notify):
    notify(Event("start", "building"))
    return Outcome()
sys.exit(main(build=build))
"""


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", ">/dev/full", "2>/dev/full"])
@pytest.mark.parametrize("option", ["", "--json", "--debug"])
def test_streams_that_take_nothing_change_no_exit_code(streams: str, option: str) -> None:
    command = f'"$0" -c "$1" +recipe=plain {option} {streams}'
    run = subprocess.run(
        ["sh", "-c", command, sys.executable, BUILD],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert run.returncode == 3
    assert (b"anfbuild: a gate" in run.stderr) == ("2>" not in streams)


def test_messages_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+recipe=plain", "+model.inputs.'a\x1b[31m'.shape=[1]"]) == 2
    assert main(["a\x1b[31m"]) == 2
    captured = capsys.readouterr()
    assert "\x1b" not in captured.err
    assert "x1b[31m" in captured.err


def test_a_folder_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["+recipe=plain"]) == 2
    assert "the current folder is gone" in capsys.readouterr().err
    assert main(["--help"]) == 0
    assert main(["--version"]) == 0


LOST = """
import signal, sys, threading
from anfbuild.cli import interruption, main
from anfbuild.errors import StepError

def build(recipe, project, **_):
    try:
        signal.raise_signal(signal.{name})
    except KeyboardInterrupt:
        {then}

interruption.PATIENCE_S = 0.1
sys.exit(main(["+recipe=plain", "--json"], build=build))
"""


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("then", ["raise ImportError('initialization failed')", "raise StepError('broke')"])
def test_an_error_that_code_of_others_makes_of_an_interruption_is_one(name: str, then: str) -> None:
    ran = python("-c", LOST.format(name=name, then=then))
    assert ran.returncode == 130
    assert json.loads(ran.stdout)["exit_code"] == 130
    assert "run the same command again to go on" in ran.stderr
    assert "broke" not in ran.stderr
    assert "failed" not in ran.stderr


@pytest.mark.skipif(os.name == "nt", reason="there is no such timer")
def test_a_build_that_does_not_end_when_it_is_told_to_is_ended() -> None:
    ran = python("-c", LOST.format(name="SIGTERM", then="threading.Event().wait(60)"))
    assert ran.returncode == 130
    assert ran.stderr == "anfbuild: interrupted; finished steps are kept: run the same command again to go on\n"


def test_an_interruption_while_source_text_is_run_keeps_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "import sys\n"
        "import anfbuild.cli.app as app\n"
        "sys.argv = ['anfbuild', '+recipe=plain']\n"
        "app._run = lambda *_: exec('raise KeyboardInterrupt')\n"
        "app.run()\n",
        encoding="utf-8",
    )
    # With -m, as users and sweeps call it: a script by its path or text would hide what the interpreter remembers.
    ran = python("-m", "interrupted", PYTHONPATH=f"{ROOT}{os.pathsep}{tmp_path}")
    assert (ran.returncode, "interrupted" in ran.stderr) == (130, True)
