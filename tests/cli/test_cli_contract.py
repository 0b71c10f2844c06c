"""A placement contract: read whole or refused by its line, rewritten key by key, and a build that is held to it."""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.cli import junit, main
from anfbuild.cli.build import build
from anfbuild.cli.contract import Contract, Listed, load, save
from anfbuild.cli.outcome import Outcome
from anfbuild.engine.run import Build
from anfbuild.engine.step import Job, Step
from anfbuild.errors import GateError, RecipeError, StepError
from anfbuild.placement import Row, write_csv
from anfbuild.recipe import Recipe

HEAD = "target,quantization,component,node,op_type,unit,reason\n"
ROW = "sm8650,int8,main,{},Erf,CPU,why\n"
NAME = "vision.det"


def put(project: Path, text: str | bytes) -> Path:
    path = project / "recipes" / "vision" / "det.placement.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_recipe_without_a_contract_has_none(tmp_path: Path) -> None:
    assert load(NAME, tmp_path).rows is None
    put(tmp_path, HEAD)
    assert load(NAME, tmp_path).rows == ()


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", "", "is empty"),
        ("target,node\n", ":1", "has the columns 'target', 'node'"),
        (HEAD.replace("reason", "reason,mine"), ":1", "and no other"),
        (HEAD.replace("reason", "node"), ":1", "each of these once"),
        (HEAD + ROW.format("a") + ROW.format("a").replace("CPU", "NPU"), ":3", "no unit 'NPU'"),
        (HEAD + ROW.format("a").replace("CPU", "HTP"), ":2", "valid choices: CPU, GPU"),
        (HEAD + ROW.format("a") + "\n" + ROW.format("a"), ":4", "listed twice, first in line 2"),
        (HEAD + ROW.format("=HYPERLINK(1)"), ":2", "'node' begins with '='"),
        (HEAD + ROW.format("a").replace("why", "@why"), ":2", "'reason' begins with '@'"),
        (HEAD + ROW.format(""), ":2", "'node' is empty"),
        (HEAD + "a,b\n", ":2", "2 cells, where 7 belong"),
        (HEAD + ROW.format('"two\nlines"') + ROW.format('"open'), ":4", "is no CSV"),
        (HEAD + ROW.format("x" * 200_000), ":2", "is no CSV"),
        ((HEAD + ROW).encode() + b"\xff", ":3", "not UTF-8"),
        (b"\x00" * 9_000_000, "", "more than 8,000,000 bytes"),
    ],
)
def test_what_is_no_contract_is_refused_by_its_line(tmp_path: Path, text: str | bytes, line: str, words: str) -> None:
    put(tmp_path, text)
    with pytest.raises(RecipeError) as error:
        load(NAME, tmp_path)
    assert error.value.where == f"recipes/vision/det.placement.csv{line}"
    assert words in str(error.value)
    assert error.value.exit_code == 2


def test_a_folder_or_a_link_to_nowhere_is_no_missing_contract(tmp_path: Path) -> None:
    path = put(tmp_path, "")
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    with pytest.raises(RecipeError, match="is no file"):
        load(NAME, tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(RecipeError, match="is no file"):
        load(NAME, tmp_path)


def test_what_a_spreadsheet_saved_is_read(tmp_path: Path) -> None:
    put(tmp_path, b"\xef\xbb\xbf" + (HEAD + ROW.format("a")).replace("\n", "\r\n").encode())
    assert load(NAME, tmp_path).rows == (Listed("sm8650", "int8", "main", "a", "Erf", "CPU", "why"),)


WORD = st.text(st.characters(codec="utf-8"), min_size=1, max_size=6)
ROWS = st.lists(
    st.builds(Listed, *[WORD] * 5, st.sampled_from(["CPU", "GPU"]), WORD), unique_by=lambda row: (row.key, row.node)
)


@given(rows=ROWS, order=st.randoms())
def test_any_rows_are_read_back_and_their_order_is_no_matter(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Listed], order: Any
) -> None:
    project = tmp_path_factory.mktemp("project")
    path = project / "recipes" / "vision" / "det.placement.csv"
    save(Contract(path, "", None), (), rows)
    data = path.read_bytes()
    assert load(NAME, project).rows == tuple(sorted(rows))
    order.shuffle(rows)
    save(Contract(path, "", None), (), rows)
    assert path.read_bytes() == data


def test_rows_of_other_keys_stay(tmp_path: Path) -> None:
    put(tmp_path, HEAD + ROW.format("a") + ROW.format("b").replace("int8", "a16w8"))
    new = Listed("sm8650", "int8", "main", "c", "Erf", "CPU", "why")
    save(load(NAME, tmp_path), [new.key], [new])
    assert [row.node for row in load(NAME, tmp_path).rows or ()] == ["b", "c"]


def test_a_contract_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "recipes").write_text("in the way")
    contract = Contract(tmp_path / "recipes" / "vision" / "det.placement.csv", "", None)
    with pytest.raises(StepError, match="cannot be written"):
        save(contract, (), ())


def test_the_contract_of_a_recipe_that_comes_with_anfbuild_holds_in_other_projects(tmp_path: Path) -> None:
    assert load("ocr_detect", tmp_path).rows is not None
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "ocr_detect.yaml").touch()
    assert load("ocr_detect", tmp_path).rows is None


STATE: dict[str, Any] = {}


def _place(job: Job[Any]) -> None:
    if STATE["off"] is not None:
        rows = [Row("key", "Conv", "HTP", 9, 0.5, "key", "", "")]
        rows += [Row(node, "Erf", "CPU", 0, None, node, f"{node} is odd", "no such op") for node in STATE["off"]]
        write_csv([*rows, Row("x_Q", "QuantizeLinear", "CPU", 0, None, "x_Q", "", "")], job.output / "placement.csv")


def _report(job: Job[Any]) -> None:
    placement: dict[str, Any] = {"unlisted": STATE["off"]}
    results = {"gates": STATE["gates"], "placement": placement, "reasons": {"/placement/htp": "no compiler here"}}
    (job.output / "results.json").write_text(json.dumps(results))


def _leaves(file: str) -> Callable[[Job[Any]], None]:
    return lambda job: (job.output / file).write_text(file) and None


@dataclasses.dataclass(frozen=True)
class Nothing:
    """A slice of no fields."""


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A project in which the steps make what STATE says; each state is a store of its own."""
    monkeypatch.setattr(
        "anfbuild.steps.GRAPH",
        {
            "place": Step("place", (), Nothing, _place),
            "quantize": Step("quantize", (), Nothing, _leaves("encodings.json")),
            "package": Step("package", ("place", "quantize"), Nothing, _leaves("package.anf")),
            "report": Step("report", ("package", "place"), Nothing, _report),
        },
    )
    monkeypatch.setattr("anfbuild.cli.build.check", lambda config: list(config)[:0])
    STATE.clear()
    STATE.update(off=[], gates=[])
    return tmp_path


def run(project: Path, off: list[str] | None, accept: bool = False, goal: str = "report", **changes: Any) -> Outcome:
    STATE.update({"off": off, **changes})
    os.environ["ANFBUILD_CACHE"] = str(project / f"store-{secrets.token_hex(4)}")
    config = {
        "goal": goal,
        "components": {},
        "source": {"private": False},
        "dataset": {"private": False},
        "target": {"soc": "sm8650"},
        "quantization": {"scheme": "int8"},
        "gates": {},
    }
    recipe = Recipe(NAME, config, lambda key: f"det.yaml ({key})")
    return build(recipe, project, latest=True, folder=None, notify=lambda _: None, accept=accept)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANFBUILD_CACHE", "")


def results(outcome: Outcome) -> dict[str, Any]:
    assert outcome.folder is not None
    document: dict[str, Any] = json.loads((outcome.folder / "results.json").read_text())
    return document


def test_without_a_contract_nothing_is_asserted(toy: Path) -> None:
    outcome = run(toy, ["odd"])
    assert (outcome.exit_code, outcome.contract) == (0, None)
    assert results(outcome)["placement"]["unlisted"] == ["odd"]
    assert not (toy / "recipes").exists()


def test_what_was_accepted_builds_and_what_leaves_besides_does_not(toy: Path) -> None:
    accepted = run(toy, ["odd", "=even"], accept=True)
    assert (accepted.exit_code, accepted.to_json()["contract"]["accepted"]) == (0, True)
    path = toy / "recipes" / "vision" / "det.placement.csv"
    data = path.read_bytes()
    assert b"'=even" in data
    assert results(accepted)["placement"]["unlisted"] == []

    held = run(toy, ["=even", "odd"])
    assert (held.exit_code, held.to_json()["contract"]["passed"]) == (0, True)
    assert results(held)["placement"]["unlisted"] == []

    missed = run(toy, ["odd", "=even", "new"])
    assert (missed.exit_code, missed.to_json()["contract"]["passed"]) == (3, False)
    assert isinstance(missed.error, GateError)
    for words in ("1 node(s) left the HTP", "new (Erf) on the CPU: new is odd", "--accept", "No package was exported"):
        assert words in str(missed.error)
    assert results(missed)["placement"]["unlisted"] == ["new"]
    assert missed.folder is not None
    assert not (missed.folder / f"{NAME}.anf").exists()
    assert (toy / "artifacts" / "builds" / NAME / "latest").resolve() == missed.folder
    assert path.read_bytes() == data


def test_a_node_that_is_back_is_told_and_no_failure(toy: Path) -> None:
    run(toy, ["odd", "even"], accept=True)
    outcome = run(toy, ["even"])
    assert outcome.exit_code == 0
    assert outcome.contract is not None
    assert [row.node for row in outcome.contract.returned] == ["odd"]
    assert "no longer: odd (--accept takes them out)" in outcome.contract.summary[1]
    run(toy, ["even"], accept=True)
    assert [row.node for row in load(NAME, toy).rows or ()] == ["even"]


def test_where_there_is_a_contract_what_it_does_not_cover_may_not_leave(toy: Path) -> None:
    put(toy, HEAD + ROW.format("odd").replace("int8", "a16w8"))
    assert run(toy, []).exit_code == 0
    assert run(toy, ["odd"]).exit_code == 3


def test_a_file_that_is_none_stops_the_build_before_it_starts(toy: Path) -> None:
    put(toy, "nonsense\n")
    outcome = run(toy, [])
    assert (outcome.exit_code, list(outcome.steps)) == (2, [])
    assert "det.placement.csv:1" in str(outcome.error)


def test_a_build_that_misses_a_gate_is_not_accepted(toy: Path) -> None:
    gate = {"name": "latency_ms", "direction": "max", "limit": 1, "unit": "ms", "value": 2, "passed": False}
    put(toy, HEAD)
    outcome = run(toy, ["odd"], accept=True, gates=[gate])
    assert outcome.exit_code == 3
    assert "latency_ms is 2" in str(outcome.error)
    assert "odd (Erf) on the CPU" in str(outcome.error)
    assert load(NAME, toy).rows == ()


def test_what_is_not_known_is_neither_judged_nor_accepted(toy: Path) -> None:
    put(toy, HEAD)
    outcome = run(toy, None)
    assert (outcome.exit_code, outcome.to_json()["contract"]["passed"]) == (0, None)
    assert outcome.contract is not None
    assert outcome.contract.summary[1] == "not judged: no compiler here"
    refused = run(toy, None, accept=True)
    assert (refused.exit_code, "no placement to accept: no compiler here" in str(refused.error)) == (1, True)


def test_a_part_of_a_build_has_no_placement_to_accept(toy: Path) -> None:
    outcome = run(toy, [], accept=True, goal="place")
    assert (outcome.exit_code, "ends at 'place'" in str(outcome.error)) == (2, True)
    put(toy, HEAD)
    assert run(toy, ["odd"], goal="place").exit_code == 0


def test_no_key_knows_of_the_contract(toy: Path) -> None:
    keys = []
    keep = Build.goal_key

    def goal_key(self: Build, goal: str) -> str | None:
        keys.append(keep(self, goal))
        return keys[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Build, "goal_key", goal_key)
        run(toy, ["odd"])
        run(toy, ["odd"], accept=True)
    assert len(set(keys)) == 1


@pytest.mark.parametrize("words", [["-m", "quantization=int8,a16w8"], ["--locked"]])
@pytest.mark.usefixtures("project")
def test_accept_is_for_one_build_that_no_lock_holds(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["+recipe=plain", "--accept", *words]) == 2
    assert "--accept writes the placement contract of one build" in capsys.readouterr().err


def test_junit_has_a_case_for_the_contract(tmp_path: Path) -> None:
    told = {"planned": [], "steps": [], "failed": None, "error": {"what": "1 node(s) left"}, "results": None}
    for passed, tag in ((True, "system-out"), (False, "failure"), (None, "skipped")):
        suite = junit.suite("det", {**told, "contract": {"passed": passed, "told": "odd \x1b left"}})
        junit.write(tmp_path / "out.xml", [suite])
        root = Xml.fromstring((tmp_path / "out.xml").read_bytes())
        (case,) = root.iterfind(".//testcase[@classname='det.contracts']")
        assert (case.get("name"), case[0].tag) == ("placement", tag)
        assert (root.find(".//testcase[@name='recipe']") is None) is (passed is False)
