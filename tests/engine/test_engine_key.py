"""Keys are canonical, and a slice reads single paths of the recipe."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
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


def test_a_memo_looks_again_when_a_file_changes_and_survives_garbage(tmp_path: Path) -> None:
    file, looks = tmp_path / "f", []

    def compute(path: Path) -> str:
        looks.append(path)
        return path.read_text()

    file.write_text("one")
    os.utime(file, (1, 1))  # long settled
    memo = Memo(tmp_path / "memo.json")
    assert [memo.get(file, compute) for _ in range(3)] == ["one"] * 3
    assert len(looks) == 1
    memo.save()
    assert Memo(tmp_path / "memo.json").get(file, compute) == "one"
    assert len(looks) == 1
    file.write_text("two")  # same size, and so fresh that its time proves nothing
    assert [memo.get(file, compute) for _ in range(2)] == ["two"] * 2
    assert len(looks) == 3
    (tmp_path / "memo.json").write_text("{broken")
    assert Memo(tmp_path / "memo.json").get(file, compute) == "two"


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
