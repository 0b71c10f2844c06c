"""A file takes its place whole, or leaves what was there."""

from __future__ import annotations

from pathlib import Path

import pytest

from anfbuild.atomic import is_partial, replacing


def test_the_old_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")
    with replacing(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
        assert is_partial(partial)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as partial:
            partial.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_names_the_file_that_was_wanted(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.json"
    with pytest.raises(FileNotFoundError) as told, replacing(path) as partial:
        partial.write_text("new")
    assert told.value.filename == str(path)
