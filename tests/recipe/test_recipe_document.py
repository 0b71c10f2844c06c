from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.errors import RecipeError
from anfbuild.recipe.document import read, refuse_code

KEYS = st.text("abcdefgh_", min_size=1, max_size=6)
TREES = st.recursive(
    st.integers(), lambda children: st.dictionaries(KEYS, children, min_size=1, max_size=4), max_leaves=12
).filter(lambda tree: isinstance(tree, dict))


def paths(tree: dict, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in tree.items():
        found.append((*above, key))
        if isinstance(value, dict):
            found += paths(value, (*above, key))
    return found


@given(TREES)
def test_the_line_of_every_key(tree: dict) -> None:
    text = yaml.safe_dump(tree, sort_keys=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.yaml"
        path.write_text(text)
        document = read(path, "a.yaml")
    assert document.data == tree
    lines = text.splitlines()
    # In block style the keys stand one a line, in the order of a walk through the tree.
    for number, keys in enumerate(paths(tree), start=1):
        assert document.line(".".join(keys)) == number
        assert lines[number - 1].strip().startswith(keys[-1]) or yaml.safe_load(lines[number - 1])


def test_nearest_place(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a:\n  b: [1,\n      2]\n")
    document = read(path, "a.yaml")
    assert document.place("a.b[1]") == "a.yaml:3"
    assert document.place("a.b[7]") == "a.yaml:2"
    assert document.place("a.c.d") == "a.yaml:1"
    assert document.place("z") == "a.yaml"


def test_an_empty_file_is_an_empty_mapping(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("# nothing\n")
    assert read(path, "a.yaml").data == {}


def test_aliases(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: &a\n  b: 1\nc: *a\n")
    assert read(path, "a.yaml").data == {"a": {"b": 1}, "c": {"b": 1}}
    path.write_text("a: &a\n  b: *a\n")
    with pytest.raises(RecipeError, match="an alias leads back"):
        read(path, "a.yaml")


@pytest.mark.parametrize("text", ["${oc.env:HOME}", "a ${now:%Y} b", "${${x}:1}", "${ f : 1}", "${f:}", "${a${b:c}}"])
def test_resolvers_are_refused(text: str) -> None:
    with pytest.raises(RecipeError, match="calls a resolver"):
        refuse_code(text, "here")


@pytest.mark.parametrize("text", ["${a.b}", "http://x:80/${a}/b:c", "${..a}", "{a: ${b}, c: 1}", "a:b", "$HOME", "}{:"])
def test_references_and_colons_are_not(text: str) -> None:
    refuse_code(text, "here")


def bomb(levels: int) -> str:
    lines = ["a0: &a0 1"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]" for level in range(1, levels)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("text", "what", "line"),
    [
        (bomb(30), "more than 100,000 values", ":7"),
        ("x: &a {<<: *a}\n", "an alias leads back", ""),
        ("x:\n  " + "[" * 60 + "]" * 60 + "\n", "nested more than 50 levels", ":2"),
        ("x: " + "[" * 5000 + "]" * 5000 + "\n", "nested more than 50 levels", ""),
        ("a: 1\n~: 1\n", "'~' is no name for a key", ":2"),
        ("a: !!timestamp 2024-01-01\n", "there is no kind of value 'timestamp'", ":1"),
        ("a: !x [1]\n", "there is no kind of value '!x'", ":1"),
        ("a: !!int x\n", "a value cannot be read", ""),
        ("a: !!bool x\n", "a value cannot be read", ""),
        ("a: 1" + "0" * 5000 + "\n", "a value cannot be read", ""),
        ("a: {null: 1}\n", "'null' is no name for a key", ":1"),
    ],
)
def test_what_is_refused(tmp_path: Path, text: str, what: str, line: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    with pytest.raises(RecipeError) as caught:
        read(path, "a.yaml")
    assert caught.value.what.startswith(what)
    assert caught.value.where == f"a.yaml{line}"


def test_a_modest_use_of_aliases_and_merging(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(bomb(4) + "b: &b {x: 1}\nc: {<<: *b, 2: y, true: z}\n")
    assert read(path, "a.yaml").data["c"] == {"x": 1, 2: "y", True: "z"}
