"""Keys are canonical, and a slice reads single paths of the recipe."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.engine.key import action_key, canonical, content_digest, lookup, read_slice
from anfbuild.engine.memo import Memo
from anfbuild.engine.step import at
from anfbuild.errors import RecipeError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON))
def test_the_order_of_keys_does_not_matter(manifest: dict[str, object]) -> None:
    assert action_key(dict(reversed(manifest.items()))) == action_key(manifest)


@given(JSON, JSON)
def test_different_values_have_different_text(a: object, b: object) -> None:
    assert (canonical(a) == canonical(b)) == (repr(_sorted(a)) == repr(_sorted(b)))


def _sorted(value: object) -> object:
    if isinstance(value, dict):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value


def test_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical({"a": float("nan")})


def test_a_key_does_not_depend_on_the_hash_seed() -> None:
    code = "from anfbuild.engine.key import action_key; print(action_key({'b': {'x', 'y'} and 1, 'a': [1.5, None]}))"
    keys = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PATH": ""}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(keys) == 1


def test_lookup_collects_over_a_star() -> None:
    tree = {"model": {"inputs": {"b": {"shape": [1]}, "a": {"shape": [2]}}}}
    assert lookup(tree, "model.inputs.*.shape") == {"a": [2], "b": [1]}
    assert lookup(tree, "model.inputs.*") == {"a": {"shape": [2]}, "b": {"shape": [1]}}
    with pytest.raises(KeyError):
        lookup(tree, "model.outputs")


def test_relative_content_paths_start_at_the_project(tmp_path: Path) -> None:
    @dataclasses.dataclass(frozen=True)
    class Slice:
        path: Path | None = at("p", content=True)

    assert read_slice(Slice, {"p": "x/y.bin"}, tmp_path).path == tmp_path / "x/y.bin"
    assert read_slice(Slice, {"p": str(tmp_path / "z")}, Path("/elsewhere")).path == tmp_path / "z"
    assert read_slice(Slice, {"p": None}, tmp_path).path is None


class Looks(list[Path]):
    """Reads a file, and notes that it did."""

    def __call__(self, path: Path) -> str:
        self.append(path)
        return path.read_text()


@pytest.fixture
def _settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of a minute later: files written now are old enough to be remembered."""
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 60_000_000_000)


@pytest.mark.usefixtures("_settled")
def test_a_memo_looks_again_when_a_file_changes(tmp_path: Path) -> None:
    file, look = tmp_path / "f", Looks()
    file.write_text("one")
    memo = Memo(tmp_path / "memo.json")
    assert [memo.get(file, look) for _ in range(3)] == ["one"] * 3
    memo.save()
    assert Memo(tmp_path / "memo.json").get(file, look) == "one"
    assert len(look) == 1
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # the clock of the file system ticks
        file.write_text("two")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert Memo(tmp_path / "memo.json").get(file, look) == "two"
    assert {path.name for path in tmp_path.iterdir()} == {"f", "memo.json"}


def test_a_memo_does_not_remember_what_is_fresh(tmp_path: Path) -> None:
    file, look = tmp_path / "f", Looks()
    file.write_text("one")
    os.utime(file, (1, 1))  # an old time that somebody set proves nothing
    memo = Memo(tmp_path / "memo.json")
    assert [memo.get(file, look) for _ in range(2)] == ["one"] * 2
    assert len(look) == 2


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.usefixtures("_settled")
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text(path.read_text().replace("one", "two")),
        _pipe,
        lambda path: path.unlink(),
        lambda path: path.write_text("{broken"),
        lambda path: path.write_text("[" * 100_000),
        lambda path: path.write_text("[]"),
        lambda path: path.write_bytes(b"\xff\xfe\xfd"),
        lambda path: path.write_text('{"sha256": 1, "entries": [1]}'),
        lambda path: path.write_text(json.dumps(json.loads(path.read_text())["entries"])),
        lambda path: path.write_text(
            json.dumps({"sha256": hashlib.sha256(b'{"a": 1}').hexdigest(), "entries": {"a": 1}})
        ),
    ],
)
def test_a_damaged_memo_is_an_empty_one(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    file, memo_file, look = tmp_path / "f", tmp_path / "memo.json", Looks()
    file.write_text("one")
    for _ in range(2):
        memo = Memo(memo_file)
        assert memo.get(file, look) == "one"
        memo.save()
        damage(memo_file)
    assert len(look) == 2


def digest(path: Path) -> str:
    return content_digest(path, Memo(path.parent / "no memo.json"))


def test_a_folder_is_what_lies_below_it_links_followed(tmp_path: Path) -> None:
    folder, linked = tmp_path / "folder", tmp_path / "linked"
    for made in (folder, linked):
        made.mkdir()
    (folder / "link").symlink_to(linked)
    (folder / "again").symlink_to(linked)  # twice the same folder is no loop
    digests = [digest(folder)]
    for change in (
        lambda: (linked / "a.txt").write_text("one"),
        lambda: (linked / "a.txt").write_text("two"),
        lambda: (folder / "empty").mkdir(),
        lambda: (folder / "empty").rename(folder / "void"),
    ):
        change()
        digests.append(digest(folder))
    assert len(set(digests)) == len(digests)
    shutil.copytree(folder, tmp_path / "copy")  # links become folders
    assert digest(tmp_path / "copy") == digests[-1]


NAMES = st.sampled_from(["a", "b", "a.b", "é", " "])
TREES = st.recursive(st.binary(max_size=2), lambda below: st.dictionaries(NAMES, below, max_size=3), max_leaves=5)


def plant(path: Path, tree: bytes | dict[str, Any]) -> None:
    if isinstance(tree, bytes):
        path.write_bytes(tree)
    else:
        path.mkdir()
        for name, below in tree.items():
            plant(path / name, below)


@settings(deadline=None)
@given(TREES, TREES)
def test_content_has_one_digest_if_names_and_bytes_are_the_same(one: Any, two: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, tree in (("one", one), ("two", two), ("same", one)):
            plant(Path(folder, name), tree)
        found = [digest(Path(folder, name)) for name in ("one", "two", "same")]
    assert found[0] == found[2]
    assert (found[0] == found[1]) is (one == two)


def test_a_file_is_no_folder_whatever_it_holds(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(canonical({}))
    assert digest(tmp_path / "folder") != digest(tmp_path / "file")


@pytest.mark.parametrize("target", [".", "..", "other"])
def test_a_folder_that_leads_back_to_itself_is_refused(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "folder"
    (folder / "other").mkdir(parents=True)
    (folder / "other" / "back").symlink_to(folder)
    (folder / "link").symlink_to(target)
    with pytest.raises(RecipeError, match=r"(link|back).* leads back to a folder that it lies in"):
        digest(folder)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "is neither a file nor a folder"),
        (lambda path: path.symlink_to("/dev/zero"), "is neither a file nor a folder"),
        (lambda path: path.symlink_to(path), "is a link that leads nowhere"),
        (lambda path: path.symlink_to("gone"), "is a link that leads nowhere"),
    ],
)
def test_what_cannot_be_read_to_an_end_is_refused(
    tmp_path: Path, make: Callable[[Path], None], message: str, inside: bool
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    make(folder / "odd")
    with pytest.raises(RecipeError, match=f"^{folder / 'odd'} {message}"):
        digest(folder if inside else folder / "odd")
