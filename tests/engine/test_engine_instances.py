"""A graph whose steps are there once for each part of a recipe, and steps that see all parts."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import pytest
from toy import GRAPH, TREE, make

from anfbuild.engine.instances import Part, expand, part_of
from anfbuild.engine.run import Build
from anfbuild.engine.step import Job, at, step
from anfbuild.engine.store import Store
from anfbuild.engine.why import explain
from anfbuild.errors import RecipeError


@dataclasses.dataclass(frozen=True)
class Choir:
    unit: str = at("toy.unit")


@step(needs=("shout[*]", "words[*]/long"), config=Choir)
def choir(job: Job[Choir]) -> None:
    """Say what all parts shout."""
    lines = [(folder / "shout.txt").read_text() for need, folder in job.inputs.items() if need.startswith("shout")]
    (job.output / "choir.txt").write_text(job.config.unit + "".join(lines))


def parts(**texts: str) -> dict[str, Part]:
    """Parts that differ in their text."""
    found = {}
    for name, text in texts.items():
        tree = copy.deepcopy(TREE)
        tree["toy"]["text"] = text
        found[name] = Part(tree, f"parts.{name}.")
    return found


def build(root: Path, low: str = "long is the day", high: str = "make for on device", **changes: Any) -> Build:
    return make(root, parts=parts(low=low, high=high), joint={"choir": choir}, **changes)


def ran(build: Build) -> list[str]:
    return [event.step for event in build.events if event.kind == "done"]


def test_a_step_is_there_once_for_each_part_and_a_joint_step_once(tmp_path: Path) -> None:
    assert set(expand(GRAPH, TREE)) == {"words", "count", "shout"}
    graph = build(tmp_path)
    assert graph.ancestors("choir") == [
        *("words[low]", "count[low]", "shout[low]", "words[high]", "count[high]", "shout[high]", "choir"),
    ]
    assert graph.needs("shout[low]") == {"words/long": ("words[low]", "long"), "count": ("count[low]", "")}
    assert set(graph.needs("choir")) == {"shout[low]", "shout[high]", "words[low]/long", "words[high]/long"}
    assert [part_of(name) for name in ("choir", "words[low]")] == [None, "low"]


def test_each_part_reads_its_own_recipe(tmp_path: Path) -> None:
    graph = build(tmp_path)
    assert graph.run("choir")
    graph.export("choir", "choir.txt", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "words4 words: LONG4 words: MAKE\nDEVICE"


def test_a_change_of_a_part_reruns_its_steps_and_the_joint_ones(tmp_path: Path) -> None:
    assert build(tmp_path).run("choir")
    other = build(tmp_path, low="another text altogether")
    assert other.run("choir")
    assert ran(other) == ["words[low]", "count[low]", "shout[low]", "choir"]
    again = build(tmp_path)
    assert again.run("choir")
    assert ran(again) == []


def test_the_same_work_of_two_parts_is_done_once(tmp_path: Path) -> None:
    alone = make(tmp_path, text="a word")
    assert alone.run("shout")
    twins = build(tmp_path, low="a word", high="a word")
    assert twins.run("choir")
    assert ran(twins) == ["choir"]
    assert twins.key("shout[low]") == twins.key("shout[high]") == alone.key("shout")


def test_a_goal_may_be_a_step_of_all_parts_or_of_one(tmp_path: Path) -> None:
    graph = build(tmp_path)
    assert graph.members("count") == ["count[low]", "count[high]"]
    assert graph.goal_key("count") is None
    assert graph.run("count")
    assert set(ran(graph)) == {"words[low]", "count[low]", "words[high]", "count[high]"}
    assert graph.tasks("count")[-1]["task_dep"] == ["count[low]", "count[high]"]
    assert graph.goal_key("count") not in {None, graph.key("count[low]"), graph.key("count[high]")}
    assert graph.goal_key("count[low]") == graph.key("count[low]")
    (record,) = Store(tmp_path / "store").builds("toy")
    assert record["steps"]["count[high]"] == graph.key("count[high]")
    with pytest.raises(RecipeError, match=r"no step 'count\[mid\]'") as caught:
        graph.members("count[mid]")
    assert "count[low]" in caught.value.choices


def test_why_names_the_part(tmp_path: Path) -> None:
    assert build(tmp_path).run("choir")
    other = build(tmp_path, low="another text")
    found = explain(other, Store(tmp_path / "store"), "count[low]")
    assert [(reason.step, reason.field) for reason in found.reasons] == [("words[low]", "parts.low.toy.text")]
    assert explain(other, Store(tmp_path / "store"), "count[high]").up_to_date
    found = explain(other, Store(tmp_path / "store"), "choir")
    assert [reason.step for reason in found.reasons] == ["words[low]"]


def test_why_compares_a_part_with_another_recipe_that_had_the_step(tmp_path: Path) -> None:
    assert make(tmp_path, name="elsewhere", text="a word").run("shout")
    found = explain(build(tmp_path, low="b word"), Store(tmp_path / "store"), "shout[low]")
    assert [(reason.step, reason.old) for reason in found.reasons] == [("words[low]", "a word")]


def test_what_is_private_in_a_part_keeps_the_joint_steps_here(tmp_path: Path) -> None:
    graph = build(tmp_path, private=["words[low]"])
    assert graph.run("choir")
    (record,) = Store(tmp_path / "store").builds("toy")
    assert record["private"] == ["choir", "count[low]", "shout[low]", "words[low]"]


def test_a_file_that_is_not_there_is_told_with_its_part(tmp_path: Path) -> None:
    views = parts(low="a", high="b")
    views["high"].tree["toy"]["file"] = "nothing.txt"
    graph = make(tmp_path, parts=views, joint={"choir": choir})
    assert not graph.run("choir")
    assert isinstance(graph.error, RecipeError)
    assert graph.error.where == "parts.high.toy.file"
