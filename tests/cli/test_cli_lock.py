"""A lock holds a build to what was asked, what it is made with and what came out; a broken one is told by its line."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.cli import lock as locks
from anfbuild.cli import main
from anfbuild.cli.build import build
from anfbuild.cli.outcome import Outcome
from anfbuild.engine.run import Build
from anfbuild.engine.step import Job, Step, at
from anfbuild.errors import GateError, RecipeError, StepError, VersionError
from anfbuild.recipe import Recipe
from anfbuild.recipe.catalogue import Catalogue
from anfbuild.recipe.files import fingerprint


@dataclasses.dataclass(frozen=True)
class Reads:
    samples: int = at("dataset.samples")
    path: Path | None = at("dataset.path", content=True)


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A slice of no fields."""


LATENCY = {"now": 2.0}


def _leaves(*files: str) -> Callable[[Job[Any]], None]:
    def run(job: Job[Any]) -> None:
        for file in files:
            (job.output / file).parent.mkdir(exist_ok=True)
            (job.output / file).write_text(file)

    return run


def _report(job: Job[Any]) -> None:
    results = {"gates": [], "latency_ms": {"total": LATENCY["now"], "source": "predicted"}}
    (job.output / "results.json").write_text(json.dumps(results))


GRAPH = {
    "fetch": Step("fetch", (), Nothing, _leaves("model/model.onnx")),
    "dataset": Step("dataset", (), Reads, _leaves("calibration/a", "evaluation/b")),
    "place": Step("place", ("fetch",), Nothing, _leaves("placement.csv")),
    "quantize": Step("quantize", ("dataset/calibration",), Nothing, _leaves("encodings.json")),
    "package": Step("package", ("place", "quantize"), Nothing, _leaves("package.anf")),
    "report": Step("report", ("package",), Nothing, _report),
}


def recipe(name: str = "vision.det", *, samples: int = 2, scheme: str = "int8", path: str | None = None) -> Recipe:
    config = {
        "goal": "report",
        "components": {},
        "source": {"private": False},
        "dataset": {"private": False, "samples": samples, "path": path},
        "target": {"soc": "sm8650"},
        "quantization": {"scheme": scheme},
        "gates": {},
    }
    return Recipe(name, config, lambda key: f"det.yaml ({key})")


def run(project: Path, lock: str | None, made: Recipe | None = None) -> Outcome:
    return build(made or recipe(), project, latest=True, folder=None, notify=lambda _: None, lock=lock)


def error(outcome: Outcome) -> Any:
    assert outcome.error is not None
    return outcome.error


@pytest.fixture(autouse=True)
def _toy_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anfbuild.steps.GRAPH", GRAPH)
    monkeypatch.setattr("anfbuild.cli.build.check", lambda config: list(config)[:0])
    monkeypatch.delenv("ANFBUILD_CACHE", raising=False)
    monkeypatch.setitem(LATENCY, "now", 2.0)
    on_cpu(monkeypatch, "x86-64-v3")


def on_cpu(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("anfbuild.cli.build.host", lambda: {"cpu_class": name})


def test_what_was_locked_builds_again(tmp_path: Path) -> None:
    assert run(tmp_path, "--lock").error is None
    path = tmp_path / "recipes" / "vision" / "det.lock.yaml"
    text = path.read_text()
    assert text.startswith("# Written by")
    entry = yaml.safe_load(text)["entries"]["sm8650/int8"]
    assert entry["config"] == {"goal": "report", "dataset.samples": 2, "dataset.path": None}
    assert entry["cpu_class"] == "x86-64-v3"
    assert set(entry["outputs"]) == {"results.json", "encodings.json", "placement.csv", "vision.det.anf"}
    assert entry["figures"] == {"/latency_ms/total": 2.0}
    assert set(entry["data"]) == {"calibration", "evaluation"}
    assert run(tmp_path, "--locked").error is None
    assert run(tmp_path, "--lock").error is None
    assert path.read_text() == text
    assert [left.name for left in path.parent.iterdir()] == [path.name]


def test_a_plug_ins_code_is_locked_and_its_version_is_a_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = {"distribution": "mine", "version": "1", "files": {"a.py": "0"}, "calls": {"anfbuild": "0"}, "tools": {}}
    fields = Build.key_fields
    monkeypatch.setattr(Build, "key_fields", lambda run, step: {**fields(run, step), "task.kind (plug-in)": identity})
    run(tmp_path, "--lock")
    identity["calls"] = {"anfbuild": "1"}
    assert run(tmp_path, "--locked").exit_code == 0
    identity["version"] = "2"
    told = error(run(tmp_path, "--locked"))
    assert (type(told), "mine locked 1, found 2" in told.what) == (VersionError, True)
    identity["files"] = {"a.py": "1"}
    told = error(run(tmp_path, "--locked"))
    assert (type(told), "task.kind (plug-in).files.a.py locked" in told.what) == (RecipeError, True)


def test_each_target_and_scheme_has_an_entry_of_its_own(tmp_path: Path) -> None:
    run(tmp_path, "--lock")
    told = error(run(tmp_path, "--locked", recipe(scheme="a16w8")))
    assert isinstance(told, RecipeError)
    assert (told.choices, "Build once with --lock" in str(told)) == (["sm8650/int8"], True)
    assert run(tmp_path, "--lock", recipe(scheme="a16w8", samples=4)).error is None
    assert run(tmp_path, "--locked").error is None
    assert sorted(locks.load("vision.det", tmp_path).entries) == ["sm8650/a16w8", "sm8650/int8"]


def test_without_a_lock_nothing_is_built(tmp_path: Path) -> None:
    outcome = run(tmp_path, "--locked")
    assert (outcome.exit_code, list(outcome.steps)) == (2, [])
    assert "Build once with --lock" in str(outcome.error)


def test_values_that_leave_the_lock_are_named_before_anything_is_built(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("a")
    run(tmp_path, "--lock", recipe(path="data.txt"))
    (tmp_path / "data.txt").write_text("b")
    outcome = run(tmp_path, "--locked", recipe(path="data.txt", samples=64))
    told = error(outcome)
    assert (outcome.exit_code, list(outcome.steps)) == (2, [])
    assert "dataset.path holds other bytes than the locked ones" in told.what
    assert "dataset.samples locked 2, asked 64 (det.yaml (dataset.samples))" in told.what
    assert told.where.startswith("recipes/vision/det.lock.yaml:")
    assert "accept the new values by building with --lock" in told.remedy


def test_other_tools_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "--lock")
    monkeypatch.setattr("anfbuild.cli.lock.contents.__version__", "9")
    told = error(run(tmp_path, "--locked"))
    assert isinstance(told, VersionError)
    assert "anfbuild locked 0.1.0, found 9" in told.what


def rebuilt(project: Path) -> Outcome:
    shutil.rmtree(project / "artifacts")
    return run(project, "--locked")


def test_other_bytes_on_the_same_cpu_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "--lock")
    monkeypatch.setitem(LATENCY, "now", 2.0001)
    outcome = rebuilt(tmp_path)
    assert isinstance(outcome.error, GateError)
    assert outcome.error.what == "not the locked bytes: results.json"
    assert outcome.folder is not None
    assert not list(outcome.folder.glob("*.anf"))  # what breaks a contract is not handed out
    assert outcome.results is not None


def test_a_build_that_breaks_its_lock_is_not_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, "--lock")
    latest = tmp_path / "artifacts" / "builds" / "vision.det" / "latest"
    held = latest.resolve()
    monkeypatch.setitem(LATENCY, "now", 3.0)
    # Another key of the report, as new code of it would give.
    monkeypatch.setitem(GRAPH, "report", dataclasses.replace(GRAPH["report"], needs=("package", "dataset")))
    outcome = run(tmp_path, "--locked")
    assert isinstance(outcome.error, GateError)
    assert outcome.folder is not None
    assert outcome.folder != held
    assert latest.resolve() == held
    assert (held / "vision.det.anf").is_file()


def test_only_what_a_build_exports_is_locked(tmp_path: Path) -> None:
    folder = run(tmp_path, "--lock").folder
    assert folder is not None
    (folder / ".0123456789abcdef.partial").write_text("left by a build that was killed")
    (folder / "notes.txt").write_text("the user's")
    assert run(tmp_path, "--locked").error is None
    run(tmp_path, "--lock")
    assert "notes" not in (tmp_path / "recipes" / "vision" / "det.lock.yaml").read_text()


def test_a_lock_that_cannot_be_written_takes_nothing_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise StepError("the lock cannot be written")

    monkeypatch.setattr(locks, "save", refuse)
    outcome = run(tmp_path, "--lock")
    assert isinstance(outcome.error, StepError)
    assert (tmp_path / "artifacts" / "builds" / "vision.det" / "latest" / "vision.det.anf").is_file()


@pytest.mark.parametrize(("latency", "code"), [(2.0001, 0), (2.1, 3)])
def test_another_cpu_is_held_to_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, latency: float, code: int
) -> None:
    run(tmp_path, "--lock")
    monkeypatch.setitem(LATENCY, "now", latency)
    on_cpu(monkeypatch, "aarch64-fp16")
    outcome = rebuilt(tmp_path)
    assert outcome.exit_code == code
    if code:
        assert "/latency_ms/total locked 2.0, built 2.1" in str(outcome.error)
        assert "Locked on x86-64-v3, built on aarch64-fp16" in str(outcome.error)


BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 20))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[: len(text) // 2] + "\n  - [", "not YAML"),
        (lambda text: text + "x: !!python/object/apply:os.system [ls]\n", "no kind of value"),
        (lambda text: text.replace("format: 1", "format: 7"), "format 7, this anfbuild knows 1"),
        (lambda text: text.replace("format: 1", "format: one"), "not of type int"),
        (lambda text: text.replace("recipe: vision.det", "recipe: other"), "the lock of recipe 'other'"),
        (lambda text: text.replace("cpu_class: x86-64-v3", "cpu_class: 3"), "not of type str"),
        (lambda text: text.replace("tolerance: 0.001", "tolerance: much"), "not a number"),
        (lambda text: text.replace("tolerance: 0.001", "tolerances: 0.001"), "has the keys"),
        (lambda text: text.replace("tolerance: 0.001", "tolerance: -1"), "not a number from 0"),
        (lambda text: text.replace("tolerance: 0.001", "tolerance: .nan"), "not a finite number"),
        (lambda text: text.replace("dataset.samples: 2", "dataset.samples: [.inf]"), "not a finite number"),
        (lambda text: text.replace("dataset.samples: 2", "7: 2"), "not a name in quotes"),
        (lambda text: text.replace("sm8650/int8:", "7:"), "not a name in quotes"),
        (lambda text: text.replace('total": 2.0', 'total": [2.0]'), "not a number"),
        (lambda _: "- a\n", "a list of `key: value` is wanted"),
        (lambda _: "", "has the keys"),
        (lambda _: BOMB, "aliases written out"),
        (lambda text: text + "#" * 8_000_000, "more than 8,000,000 bytes"),
    ],
)
@pytest.mark.parametrize("option", ["--lock", "--locked"])
def test_a_lock_that_is_none_is_told_and_kept(
    tmp_path: Path, change: Callable[[str], str], message: str, option: str
) -> None:
    run(tmp_path, "--lock")
    path = tmp_path / "recipes" / "vision" / "det.lock.yaml"
    path.write_text(change(path.read_text()))
    broken = path.read_text()
    outcome = run(tmp_path, option)
    assert (outcome.exit_code, list(outcome.steps)) == (2, [])
    assert message in str(outcome.error)
    assert error(outcome).where.startswith("recipes/vision/det.lock.yaml")
    assert path.read_text() == broken


TEXT = st.text("aé模 1e.~:#-'\"\n\t\\[]{}*&!%@`|>?,\x7f\ud7ff\U0001f600", max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["a.b", "yes", "1e3", "model.inputs.null.shape", "x"]), VALUES))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, config: dict[str, Any]) -> None:
    project = tmp_path_factory.mktemp("lock")
    entry = locks.Entry(config, {"on": "1e3"}, "~", {}, {}, {"0x1f": "12e4"}, {"/a/0": 1.5}, 1e-3)
    locks.save(locks.load("a", project), "s/i", entry)
    assert locks.load("a", project).entries == {"s/i": entry}


def test_a_lock_is_no_recipe(project: Path) -> None:
    before = Catalogue(project).recipes(), fingerprint([], project)
    (project / "recipes" / "plain.lock.yaml").write_text("format: 1\n")
    (project / "recipes" / "vision").mkdir()
    (project / "recipes" / "vision" / "det.lock.yaml").write_text("format: 1\n")
    assert (Catalogue(project).recipes(), fingerprint([], project)) == before


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("options", [["-m", "--lock"], ["--lock", "--locked"]])
def test_a_lock_is_written_by_one_build(capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert main(["+recipe=plain", *options]) == 2
    assert "--lock writes the lock of one build" in capsys.readouterr().err
