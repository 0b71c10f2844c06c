"""A small part of the two campaigns that hold the rules to the compiler's verdict and to the emulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from anfbuild.qnn import unavailable

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))


def rows(*words: str) -> list[list[str]]:
    """The cells of the table that a campaign ends with. It fails where too little is foreseen."""
    done = subprocess.run([sys.executable, *words], cwd=BENCHMARKS, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_placement_is_the_compilers() -> None:
    (row,) = rows("placement.py", "--graphs", "6", "--first", "600", "--archs", "v75")
    right, nodes = map(int, row[3].split("/"))
    assert right == nodes > 50
    assert row[1] == "6"


@pytest.mark.parametrize(
    ("only", "scheme", "wrong"), [("ScatterElements none", "int8", 1), ("HardSigmoid", "a16w8", 1)]
)
def test_what_the_emulator_shows_wrong_is_foreseen(only: str, scheme: str, wrong: int) -> None:
    (row,) = rows("exactness.py", "--archs", "v75", "--schemes", scheme, "--only", only)
    foreseen, seen = map(int, row[3].split("/"))
    assert foreseen == seen >= wrong
