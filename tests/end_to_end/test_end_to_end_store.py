"""A store in odd places, homes that cannot be written, clocks that are apart."""

from __future__ import annotations

import os
import time
from pathlib import Path

import mounts
from projects import Project, write_tiny

DAY = 86400


def age(store: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in store.rglob("*"):
        os.utime(path, (then, then))


def test_a_store_that_no_place_is_named_for_or_a_relative_one(tmp_path: Path) -> None:
    write_tiny(tmp_path / "project")
    for value, place in (("", "artifacts/store"), ("my store", "my store")):
        project = Project(tmp_path / "project", Path(value))
        ran = project.run("+recipe=mine", "goal=fetch", ANFBUILD_CACHE=value)
        assert ran.code == 0, ran.err
        assert (tmp_path / "project" / place / "store.json").is_file()


def test_long_names_spaces_and_letters_beyond_ascii(tmp_path: Path) -> None:
    folder = tmp_path / ("ü " * 80) / ("模型" * 40) / ("x" * 240)
    write_tiny(folder)
    project = Project(folder, folder / ("y" * 240) / "a store")
    ran = project.run("+recipe=mine", "--json")
    assert ran.code == 0, ran.err
    assert project.run("+recipe=mine", "--json").steps_run == []
    assert project.run("cache", "verify").code == 0


def test_a_home_that_cannot_be_written(alone: Project, tmp_path: Path) -> None:
    gone, home = str(tmp_path / "gone"), tmp_path / "home"
    ran = alone.run("+recipe=mine", "goal=quantize", HOME=gone, XDG_CACHE_HOME=gone)
    assert ran.code == 0, ran.err
    home.mkdir()
    with mounts.read_only(home):
        ran = alone.run("+recipe=mine", HOME=str(home), XDG_CACHE_HOME=str(home))
    assert ran.code == 0, ran.err
    assert "Traceback" not in ran.err


def test_sources_and_data_of_another_time(alone: Project) -> None:
    age(alone.folder, time.time())  # 1970
    assert alone.run("+recipe=mine", "goal=quantize").code == 0
    age(alone.folder / "data", -10_000 * DAY)
    assert alone.run("+recipe=mine", "goal=quantize", "--json").steps_run == []
