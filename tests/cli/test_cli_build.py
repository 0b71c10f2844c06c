"""What a build prints, and where it leaves its files: of a graph whose steps do next to nothing."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from anfbuild.cli.build import build, make, store_root
from anfbuild.cli.outcome import Outcome
from anfbuild.engine.run import Build, Event
from anfbuild.engine.step import Job, Step
from anfbuild.engine.store import Store
from anfbuild.errors import StepError
from anfbuild.recipe import Recipe

CONFIG = {"goal": "report", "components": {}, "source": {"private": False}, "dataset": {"private": False}, "gates": {}}
RECIPE = Recipe("plain", CONFIG, lambda key: f"plain.yaml ({key})")


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A slice of no fields."""


def _leaves(file: str, text: str) -> Callable[[Job[Nothing]], None]:
    return lambda job: (job.output / file).write_text(text) and None


GRAPH = {
    "prepare": Step("prepare", (), Nothing, _leaves("prepare.json", "{}")),
    "place": Step("place", ("prepare",), Nothing, _leaves("placement.csv", "node")),
    "quantize": Step("quantize", ("prepare",), Nothing, _leaves("encodings.json", "{}")),
    "report": Step("report", ("quantize", "place"), Nothing, _leaves("results.json", '{"gates": []}')),
    "package": Step("package", ("report",), Nothing, _leaves("package.anf", "bytes")),
}


@dataclasses.dataclass(frozen=True)
class Events:
    """Keeps what is told, and calls `then` with each event."""

    kinds: list[tuple[str, str]] = dataclasses.field(default_factory=list)
    then: Callable[[Event], object] = repr

    def __call__(self, event: Event) -> None:
        self.kinds.append((event.step, event.kind))
        self.then(event)


@pytest.fixture(autouse=True)
def _toy_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anfbuild.steps.GRAPH", GRAPH)
    monkeypatch.setattr("anfbuild.cli.build.check", lambda config: list(config)[:0])
    monkeypatch.delenv("ANFBUILD_CACHE", raising=False)


def run(project: Path, notify: Callable[[Event], None]) -> Outcome:
    return build(RECIPE, project, latest=True, folder=None, notify=notify)


def test_a_build_leaves_its_files_and_a_link_to_them(tmp_path: Path) -> None:
    outcome = run(tmp_path, Events())
    assert outcome.error is None
    builds = tmp_path / "artifacts" / "builds" / "plain"
    assert {path.name for path in (builds / "latest").iterdir()} == {
        "encodings.json",
        "placement.csv",
        "plain.anf",
        "results.json",
        "run.json",
    }
    assert outcome.folder is not None
    assert {path.name for path in builds.iterdir()} == {"latest", outcome.folder.name}
    assert run(tmp_path, Events()).error is None  # the link is replaced


def test_a_folder_in_the_way_of_the_link_is_named_and_nothing_else_is_left(tmp_path: Path) -> None:
    latest = tmp_path / "artifacts" / "builds" / "plain" / "latest"
    latest.mkdir(parents=True)
    (latest / "mine").touch()
    outcome = run(tmp_path, Events())
    assert isinstance(outcome.error, StepError)
    assert outcome.error.where == str(latest)
    assert "a folder is in the way of the link 'latest'" in str(outcome.error)
    assert "Move that folder away" in str(outcome.error)
    assert (latest / "mine").exists()
    assert [path for path in latest.parent.iterdir() if path.name.startswith(".")] == []


def test_a_link_that_cannot_be_placed_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = Path.replace

    def refuse(path: Path, target: Path) -> Path:
        if target.name == "latest":
            raise OSError(errno.ENOSPC, "No space left on device")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", refuse)
    outcome = run(tmp_path, Events())
    builds = tmp_path / "artifacts" / "builds" / "plain"
    assert isinstance(outcome.error, StepError)
    assert outcome.error.where == str(builds)
    assert [path for path in builds.iterdir() if path.name.startswith(".")] == []


def test_a_store_below_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANFBUILD_CACHE", "~/store")
    assert store_root(tmp_path / "project") == tmp_path / "store"


def test_a_build_that_waits_for_another_says_so(tmp_path: Path) -> None:
    first: Build = make(RECIPE, tmp_path, print)
    key = first.key("prepare")
    assert key is not None
    with contextlib.ExitStack() as other:
        other.enter_context(Store(tmp_path / "artifacts" / "store").lock(key))
        events = Events(then=lambda event: other.close() if event.kind == "wait" else None)
        assert run(tmp_path, events).error is None
    assert events.kinds[:2] == [("prepare", "wait"), ("prepare", "start")]
