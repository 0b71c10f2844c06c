"""Every step makes the same bytes in another place, at another time, for another user, and reads only what it says."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from projects import write_tiny, write_two

import anfbuild
from anfbuild.steps import GRAPH, JOINT

HERE = Path(__file__).parent
ROOT = Path(anfbuild.__file__).parents[1]
CHECKOUT = Path(__file__).parents[2]

ONE = {
    "HOME": "home of one",
    "USER": "one",
    "LOGNAME": "one",
    "TZ": "UTC",
    "LC_ALL": "C.UTF-8",
    "PYTHONHASHSEED": "1",
    "COLUMNS": "80",
}
OTHER = {
    "HOME": "home of the other",
    "USER": "other",
    "LOGNAME": "other",
    "TZ": "Pacific/Kiritimati",
    "LC_ALL": "POSIX",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONUTF8": "0",
    "PYTHONHASHSEED": "2",
    "ANFBUILD_SHIFT_S": str(400.3 * 86400),
    "COLUMNS": "200",
    "OMP_NUM_THREADS": "1",
    "ANFBUILD_THREADS": "1",
}


@dataclasses.dataclass(frozen=True)
class Made:
    """What a step made in one of the places."""

    key: str
    files: dict[str, str]
    undeclared: list[str]


def make(folder: Path, request: dict[str, Any], variables: dict[str, str], umask: int) -> dict[str, Made]:
    """Run each step of the request's graph in the project `folder`, in the environment `variables`."""
    around = folder.parent
    for name in (variables["HOME"], "tmp"):
        (around / name).mkdir(exist_ok=True)
    (around / "request.json").write_text(json.dumps({**request, "umask": umask}), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(HERE / "watched.py"), str(around / "request.json"), str(around / "made.json")],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            **variables,
            "HOME": str(around / variables["HOME"]),
            "TMPDIR": str(around / "tmp"),
            "ANFBUILD_CACHE": str(around / "store"),
            "PYTHONPATH": os.pathsep.join([str(HERE / "watcher"), str(ROOT), str(HERE)]),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = json.loads((around / "made.json").read_text(encoding="utf-8"))
    assert not [found for found in made.values() if isinstance(found, str)], made
    return {name: Made(*found) for name, found in made.items()}


def make_twice(
    root: Path, request: dict[str, Any], fill: Callable[[Path], None]
) -> tuple[dict[str, Made], dict[str, Made]]:
    made = []
    for name, variables, umask in (("a", ONE, 0o022), ("b c – é", OTHER, 0o077)):
        folder = root / name / ("project" if name == "a" else "another name")
        folder.parent.mkdir()
        fill(folder)
        made.append(make(folder, {**request, "watch": variables is OTHER}, variables, umask))
    return made[0], made[1]


def faults(one: dict[str, Made], other: dict[str, Made]) -> dict[str, list[str]]:
    """Step -> what is wrong with it."""
    found = {}
    for name in one:
        wrong = [*one[name].undeclared, *other[name].undeclared]
        if one[name].key != other[name].key:
            wrong.append("another key")
        if one[name].files != other[name].files:
            wrong.append("other bytes")
        if wrong:
            found[name] = sorted(set(wrong))
    return found


GOALS = ["report", "lint", "diagnose"]


def test_the_steps_of_a_small_recipe(tmp_path: Path) -> None:
    one, other = make_twice(tmp_path, {"overrides": ["+recipe=mine"], "goals": GOALS}, write_tiny)
    assert set(one) == set(GRAPH)
    assert faults(one, other) == {}


@pytest.mark.full
def test_the_steps_of_a_recipe_of_two_components(tmp_path: Path) -> None:
    one, other = make_twice(tmp_path, {"overrides": ["+recipe=two"], "goals": GOALS}, write_two)
    assert {name for name in one if "[" not in name} == set(JOINT)
    assert faults(one, other) == {}


BAD = {
    "clock": ["other bytes"],
    "calendar": ["other bytes"],
    "variable": ["variable NEVER_HEARD_OF"],
    "user": ["other bytes"],
    "order": ["other bytes"],
    "place": ["other bytes"],
    "file": ["file /etc/hostname"],
    "listing": ["folder /etc"],
    "worker": ["file /etc/hostname"],
}


def test_steps_that_read_what_they_do_not_declare_are_caught(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        folder.mkdir()
        for name in ("in.txt", "other.txt"):
            (folder / name).write_text("text", encoding="utf-8")

    tree = {"toy": {"file": "in.txt"}}
    request = {"graph": "bad_steps", "name": "ALL", "tree": tree, "goals": ["all"]}
    found = faults(*make_twice(tmp_path, request, fill))
    assert [Path(line).name for line in found.pop("beside")] == ["other.txt"]
    if ROOT == CHECKOUT:  # what lies among the installed packages is told by its version
        assert found.pop("code") == [f"code {ROOT / 'anfbuild' / 'soc' / 'table.py'}"]
    assert found.pop("all") == ["another key"]
    assert found == BAD
