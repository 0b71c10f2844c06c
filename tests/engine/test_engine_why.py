"""Why a step would run: exactly what differs from the nearest earlier build, and nothing that does not matter."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
import toy
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.engine.run import Build
from anfbuild.engine.step import Job, Step
from anfbuild.engine.store import Store
from anfbuild.engine.why import Explanation, explain, flatten
from anfbuild.errors import RecipeError


def why(root: Path, step: str = "shout", **changes: Any) -> Explanation:
    return explain(toy.make(root, notify=lambda _: None, **changes), Store(root / "store"), step)


def built(root: Path, step: str = "shout", **changes: Any) -> Build:
    run = toy.make(root, notify=lambda _: None, **changes)
    assert run.run(step)
    return run


def told(explanation: Explanation) -> list[tuple[Any, ...]]:
    return [(r.step, r.kind, r.field, r.old, r.new) for r in explanation.reasons]


def test_a_step_that_was_never_built(tmp_path: Path) -> None:
    found = why(tmp_path)
    assert (found.up_to_date, found.key, found.against) == (False, None, None)
    assert told(found) == [("shout", "never", None, None, None)]
    assert found.waits == ("words", "count")


def test_a_step_that_is_up_to_date_names_its_result(tmp_path: Path) -> None:
    run = built(tmp_path)
    found = why(tmp_path)
    assert (found.up_to_date, found.key, found.reasons) == (True, run.key("shout"), ())
    assert found.against is not None
    assert (found.against.recipe, found.against.key) == ("toy", run.key("shout"))
    assert found.against.seconds is not None
    assert found.against.made is not None


def test_nothing_is_run_and_nothing_written(tmp_path: Path) -> None:
    built(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    why(tmp_path, text="other words")
    assert sorted(tmp_path.rglob("*")) == before


def test_its_own_change_makes_it_run_for_certain(tmp_path: Path) -> None:
    built(tmp_path)
    found = why(tmp_path, "count", unit="pieces")
    assert found.up_to_date is False
    assert told(found) == [("count", "changed", "toy.unit", "words", "pieces")]


def test_an_ancestors_change_decides_only_once_it_ran(tmp_path: Path) -> None:
    built(tmp_path)
    found = why(tmp_path, "count", text="more words for on device")
    assert (found.up_to_date, found.key, found.waits) == (None, None, ("words",))
    assert told(found) == [("words", "changed", "toy.text", "make for on device", "more words for on device")]
    built(tmp_path, "words", text="more words for on device")
    found = why(tmp_path, "count", text="more words for on device")
    assert (found.up_to_date, found.waits) == (False, ())
    assert [reason.field for reason in found.reasons] == ["toy.text"]


def test_a_change_whose_output_came_out_the_same_is_no_reason(tmp_path: Path) -> None:
    built(tmp_path, text="one make")
    built(tmp_path, "count", text="two make")  # the count differs in nothing, the long words neither
    assert why(tmp_path, text="two make").up_to_date is True
    found = why(tmp_path, text="two make", fail="error")
    assert [reason.field for reason in found.reasons] == ["toy.fail"]


def test_the_nearest_build_is_compared_and_of_equals_the_newest(tmp_path: Path) -> None:
    built(tmp_path, unit="a", text="some other words")
    built(tmp_path, unit="b")
    assert [r.old for r in why(tmp_path, "count", unit="c", text="some other words").reasons] == ["a"]
    assert [r.old for r in why(tmp_path, "count", unit="c").reasons] == ["b"]


def test_results_of_builds_that_were_not_finished_count_where_there_is_no_other(tmp_path: Path) -> None:
    assert not toy.make(tmp_path, notify=lambda _: None, fail="error").run("shout")
    found = why(tmp_path, "count", unit="pieces")
    assert told(found) == [("count", "changed", "toy.unit", "words", "pieces")]


def test_other_content_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    built(tmp_path, file="a.txt")
    (tmp_path / "a.txt").write_text("b")
    (reason,) = why(tmp_path, "words", file="a.txt").reasons
    assert (reason.kind, reason.field, reason.old["suffix"], reason.new["suffix"]) == (
        "content",
        "toy.file",
        ".txt",
        ".txt",
    )
    assert reason.old["sha256"] != reason.new["sha256"]


def test_tools_and_code_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built(tmp_path)
    own_fields, code_files = Build.own_fields, Build.code_files
    monkeypatch.setattr(
        Build, "own_fields", lambda run, name: {**own_fields(run, name), "code": "x", "tools": {"onnx": "9"}}
    )
    monkeypatch.setattr(Build, "code_files", lambda run, name: {**code_files(run, name), "graph/fold.py": "0"})
    assert told(why(tmp_path, "words")) == [
        ("words", "tool", "onnx", None, "9"),
        ("words", "code", "graph/fold.py", None, "0"),
    ]


def test_a_result_that_was_removed(tmp_path: Path) -> None:
    run = built(tmp_path)
    store = Store(tmp_path / "store")
    key = run.key("words")
    assert key is not None
    store.entry(key).unlink()
    assert told(why(tmp_path, "words")) == [("words", "lost", None, None, None)]
    found = why(tmp_path, "count")
    assert (found.up_to_date, found.waits) == (None, ("words",))
    assert told(found) == [("words", "lost", None, None, None)]


def test_an_output_that_differs_though_nothing_else_does(tmp_path: Path) -> None:
    turn = iter("ab")

    def fickle(job: Job[toy.Words]) -> None:
        (job.output / "out.txt").write_text(next(turn))

    graph = {"fickle": Step("fickle", (), toy.Words, fickle), "after": Step("after", ("fickle",), toy.Count, _nothing)}
    store = Store(tmp_path / "store")
    first = toy.make(tmp_path, graph, notify=lambda _: None)
    assert first.run("after")
    key = first.key("fickle")
    assert key is not None
    store.entry(key).unlink()
    assert toy.make(tmp_path, graph, notify=lambda _: None).run("fickle")
    (reason,) = explain(toy.make(tmp_path, graph), store, "after").reasons
    assert (reason.step, reason.kind, reason.field) == ("after", "input", "fickle")


def _nothing(job: Job[toy.Count]) -> None:
    (job.output / "out.txt").touch()


def test_an_unknown_step_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="did you mean 'count'"):
        why(tmp_path, "coutn")


WORD = st.sampled_from(["make", "for", "a device", "on"])


@settings(max_examples=15, deadline=None)
@given(st.fixed_dictionaries({}, optional={"text": WORD, "unit": WORD, "fail": WORD, "file": WORD}))
def test_exactly_the_changed_fields_are_named(changes: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "a.txt").write_text("before")
        built(root, file="a.txt")
        if "file" in changes:
            (root / "a.txt").write_text(changes.pop("file"))
            expected = {"toy.file"}
        else:
            expected = set()
        found = why(root, file="a.txt", **changes)
        expected |= {f"toy.{name}" for name in changes}
        assert {reason.field for reason in found.reasons} == expected
        assert (found.up_to_date is True) == (not expected)
        new = {reason.field: reason.new for reason in found.reasons if reason.kind == "changed"}
        assert new == {f"toy.{name}": value for name, value in changes.items()}


def test_a_config_by_its_leaves() -> None:
    content = {"suffix": ".onnx", "sha256": "0"}
    config = {
        "model.inputs.*": {"x": {"shape": [1, 2]}},
        "model.inputs.*.shape": {"x": [1, 2]},
        "gates.*": {},
        "source.path": content,
        "host.versions": [{"part": "a", "found": None}],
    }
    assert flatten(config) == {
        "model.inputs.x.shape": [1, 2],
        "gates": {},
        "source.path": content,
        "host.versions[0].part": "a",
        "host.versions[0].found": None,
    }
