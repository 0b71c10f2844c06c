from __future__ import annotations

import sys
from pathlib import Path

import pytest

from anfbuild.errors import StepError
from anfbuild.sources import programs

SLOW = """\
import os, pathlib, time
file = pathlib.Path(os.environ["TMPDIR"]) / "wheel"
file.write_bytes(bytes(1000))
time.sleep(2.5)
print("done")
"""


def test_says_how_much_has_come_while_the_program_runs(tmp_path: Path) -> None:
    told: list[int] = []
    code, log = programs.run("a wheel", [sys.executable, "-c", SLOW], tmp_path, 60.0, told.append, 0.1)
    assert (code, log) == (0, "done\n")
    assert 1000 in told


def test_a_program_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(StepError, match=r"a wheel was not downloaded within 0\.1 s"):
        programs.run("a wheel", [sys.executable, "-c", "import time; time.sleep(600)"], tmp_path, 0.1, print, 60.0)


def test_gives_what_the_program_said_and_its_code(tmp_path: Path) -> None:
    failing = "import sys; print('out'); sys.stdout.flush(); print('error', file=sys.stderr); sys.exit(3)"
    assert programs.run("a wheel", [sys.executable, "-c", failing], tmp_path, 60.0, print, 60.0) == (3, "out\nerror\n")
