"""Two builds compared: bytes on one CPU class, figures across two, and the first step that differs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from anfbuild.cli.tolerance import close, first_difference
from anfbuild.cli.twice import DIFFERS, NEAR, SAME, UNTOLD, Built, File, compare, first
from anfbuild.engine.store import Store

Files = Mapping[str, str]


def built(root: Path, steps: Mapping[str, Files], cpu: str = "x86-64-v3") -> Built:
    """A store with a result of these files for each step."""
    store = Store(root / "store")
    keys = {}
    for number, (step, files) in enumerate(steps.items()):
        folder = root / step
        folder.mkdir(parents=True)
        for name, text in files.items():
            (folder / name).write_text(text)
        keys[step] = f"{number:064x}"
        store.commit(keys[step], folder, {"host": {"cpu_class": cpu}, "manifest": {"inputs": {}}})
    return Built(store, keys)


def test_the_first_difference_is_named_by_file_and_leaf(tmp_path: Path) -> None:
    one = built(tmp_path / "1", {"a": {"a.json": "1"}, "b": {"b.json": '{"x": [1, 2]}', "b.bin": "1"}, "c": {"c": "1"}})
    two = built(tmp_path / "2", {"a": {"a.json": "1"}, "b": {"b.json": '{"x": [1, 3]}', "b.bin": "2"}, "c": {"c": "2"}})
    lines = compare("abc", one, two)
    assert [(line.step, line.files, line.verdict) for line in lines] == [
        ("a", 1, SAME),
        ("b", 2, DIFFERS),
        ("c", 1, DIFFERS),
    ]
    culprit = first(lines)
    assert culprit is not None
    assert culprit.off == (File("b.bin", DIFFERS), File("b.json", DIFFERS, "/x/1 2, then 3"))


def test_a_file_that_only_one_has(tmp_path: Path) -> None:
    (line,) = compare("a", built(tmp_path / "1", {"a": {"x": ""}}), built(tmp_path / "2", {"a": {"y": ""}}))
    assert [(file.name, file.detail) for file in line.off] == [
        ("x", "only made the first time"),
        ("y", "only made the second time"),
    ]


@pytest.mark.parametrize(
    ("files", "verdict", "detail"),
    [
        ({"a.json": '{"x": 2.001}'}, NEAR, "within 0.001, made on x86-64-v3"),
        ({"a.json": '{"x": 2.01}'}, DIFFERS, "/x 2.0, then 2.01"),
        ({"a.json": '{"x": "2.0"}'}, DIFFERS, "/x 2.0, then '2.0'"),
        ({"a.json": '{"x": 2.0}', "b.bin": "2"}, UNTOLD, "made on x86-64-v3, this is x86-64-v4"),
        ({"a.json": "no json", "b.bin": "1"}, UNTOLD, "made on x86-64-v3, this is x86-64-v4"),
    ],
)
def test_across_two_cpu_classes_figures_are_compared(tmp_path: Path, files: Files, verdict: str, detail: str) -> None:
    before = {"a.json": '{"x": 2.0}', "b.bin": "1"}
    one = built(tmp_path / "1", {"a": before})
    (line,) = compare("a", one, built(tmp_path / "2", {"a": {**before, **files}}, "x86-64-v4"))
    assert line.verdict == verdict
    assert [file.detail for file in line.off] == [detail]
    assert (first([line]) is None) == (verdict != DIFFERS)


def test_a_result_that_is_gone(tmp_path: Path) -> None:
    one, two = built(tmp_path / "1", {"a": {"x": ""}}), built(tmp_path / "2", {})
    assert [line.verdict for line in compare("a", one, two)] == [DIFFERS]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [(1, 1.0009, True), (1, 1.0011, False), (-1, 1, False), (0, 1e-12, True), (1, float("nan"), False)],
)
def test_the_tolerance_is_relative(a: float, b: float, same: bool) -> None:
    assert close(a, b, 1e-3) is close(b, a, 1e-3) is same


def test_leaves_that_one_document_lacks() -> None:
    assert first_difference({"a": 1}, {"a": 1, "b": None}) == "/b absent, then None"
    assert first_difference({"a": [1, 2]}, {"a": [1]}) == "/a [1, 2], then [1]"
    assert first_difference({"a": True}, {"a": 1}, 1e-3) == "/a True, then 1"
    assert first_difference([{"a": 1}], [{"a": 1}]) is None
