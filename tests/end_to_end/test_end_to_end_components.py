"""Two models in one package, through the command line: steps, goals, why, lock, sweep, reproduce, JUnit, errors."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from projects import Project, write_two

from anfbuild import package, qnn
from anfbuild.package import check, load_schema
from anfbuild.steps import GRAPH

needs_compiler = pytest.mark.skipif(qnn.unavailable() is not None, reason=str(qnn.unavailable()))
EACH = {f"{step}[{component}]" for step in {*GRAPH} - {"diagnose", "lint"} for component in ("left", "right")}


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project of two components that was built, over a store of its own."""
    folder = tmp_path_factory.mktemp("two")
    write_two(folder / "project")
    project = Project(folder / "project", folder / "store")
    ran = project.run("+recipe=two", "--lock", "--junit", "junit.xml", "--json")
    assert ran.code == 0, ran.err
    assert {step["step"] for step in ran.document["steps"]} == EACH | {"package", "report"}
    return project


def latest(project: Project) -> Path:
    return project.folder / "artifacts" / "builds" / "two" / "latest"


@needs_compiler
def test_one_package_and_one_report_of_both(two: Project) -> None:
    results = json.loads((latest(two) / "results.json").read_bytes())
    assert check(results, load_schema("anfbuild.report", "results.schema.json")) == []
    left, right = (results["components"][name] for name in ("left", "right"))
    assert (left["quantization"], right["quantization"]) == ("int8_per_channel", "a16w8")
    total = left["latency_ms"]["total"] + right["latency_ms"]["total"]
    assert results["latency_ms"]["total"] == pytest.approx(total)
    assert ("latency_ms", "right") in {(gate["name"], gate.get("component")) for gate in results["gates"]}
    assert "Component right" in (latest(two) / "report.html").read_text(encoding="utf-8")
    packed = package.read(latest(two) / "two.anf")
    assert set(packed.models) == {"left", "right"}
    assert packed.models["right"]["source"]["license"] == "MIT"
    assert packed.models["left"]["entry"]["qdq"] == "left/qdq/model.onnx"
    assert packed.models["right"]["entry"]["context"] in packed.names
    for name in ("left", "right"):
        assert {path.name for path in (latest(two) / name).iterdir()} == {"encodings.json", "placement.csv"}
    suite = Xml.parse(two.folder / "junit.xml").getroot()
    assert {"convert[left]", "report", "right: latency_ms max"} <= {case.get("name") for case in suite.iter("testcase")}


def test_a_change_of_one_component_leaves_the_other_as_it_is(two: Project) -> None:
    again = two.run("+recipe=two", "--json")
    assert (again.code, again.steps_run) == (0, [])
    ran = two.run("+recipe=two", "components.right.quantization=int8", "--json")
    assert ran.code == 0, ran.err
    assert {step.partition("[")[2] for step in ran.steps_run} == {"", "right]"}
    assert {"quantize[right]", "package", "report"} <= set(ran.steps_run)
    assert two.run("+recipe=two", "--json").steps_run == []


def test_a_component_that_becomes_a_recipe_of_its_own_is_not_built_again(two: Project) -> None:
    ran = two.run("+recipe=mine", "source.license=Apache-2.0", "--json")
    assert ran.code == 0, ran.err
    assert set(ran.steps_run) <= {"package", "report"}


def test_goals_of_one_component_and_of_all(two: Project) -> None:
    ran = two.run("+recipe=two", "goal=convert", "--json")
    assert {step["step"] for step in ran.document["steps"]} == {
        f"{step}[{component}]" for step in ("fetch", "convert", "lint") for component in ("left", "right")
    }
    assert (Path(ran.document["folder"]) / "lint" / "right" / "lint.json").is_file()
    assert (Path(ran.document["folder"]) / "convert" / "right" / "model.onnx").is_file()
    ran = two.run("+recipe=two", "goal=package[left]", "--json")
    assert ran.code == 0, ran.err
    alone = package.read(Path(ran.document["folder"]) / "package" / "left" / "package.anf")
    assert (alone.manifest["name"], list(alone.models)) == ("two.left", ["main"])
    ran = two.run("+recipe=two", "goal=convert[middle]")
    assert ran.code == 2
    assert "convert[left], convert[right]" in ran.err


def test_why_names_the_component(two: Project) -> None:
    ran = two.run("why", "convert[left]", "+recipe=two", "--json")
    assert ran.document["up_to_date"]
    ran = two.run("why", "convert", "+recipe=two", "components.right.model.inputs.x.shape=[1,3,64,64]", "--json")
    left, right = ran.document["components"]
    assert (left["up_to_date"], right["up_to_date"]) == (True, False)
    assert [reason["field"] for reason in right["reasons"]] == ["components.right.model.inputs.x.shape"]
    ran = two.run("why", "convert[up]", "+recipe=two")
    assert (ran.code, "there is no step 'convert[up]'" in ran.err) == (2, True)


def test_the_lock_holds_each_component(two: Project) -> None:
    assert two.run("+recipe=two", "--locked").code == 0
    left = two.run("+recipe=two", "components.right.model.inputs.x.mean=[1,1,1]", "--locked")
    assert left.code == 2
    assert "components.right.model.inputs.x.mean" in left.err
    lock = (two.folder / "recipes" / "two.lock.yaml").read_text(encoding="utf-8")
    for text in ("sm8650/int8_per_channel+a16w8", "left/model", "right/calibration", "right/placement.csv"):
        assert text in lock or qnn.unavailable() is not None


def test_a_sweep_over_an_option_of_one_component(two: Project) -> None:
    ran = two.run("-m", "+recipe=two", "components.right.quantization=int8,a16w8", "--json")
    assert ran.code == 0, ran.err
    told = [job["results"]["components"]["right"]["quantization"] for job in ran.document["jobs"]]
    assert told == ["int8", "a16w8"]


@pytest.mark.parametrize(
    ("override", "where", "what"),
    [
        ("components.left.source.path=models/none.onnx", "(components.left.source.path)", "none.onnx does not exist"),
        ("components.left.source.path=recipes/two.yaml", "component 'left'", "ends with .yaml"),
        ("components.right.dataset.kind=nope", "(components.right.dataset.kind)", "unknown kind of data set 'nope'"),
        ("+components.right.gates.speed={max: 1}", "(components.right.gates.speed)", "there is no gate 'speed'"),
    ],
)
def test_errors_name_the_component(two: Project, override: str, where: str, what: str) -> None:
    ran = two.run("+recipe=two", override)
    assert ran.code in (1, 2)
    assert where in ran.err
    assert what in ran.err
    assert "Traceback" not in ran.err


def test_a_missed_gate_of_a_component_leaves_no_package(two: Project) -> None:
    ran = two.run("+recipe=two", "components.right.gates.latency_ms.max=0")
    assert ran.code == (3 if qnn.unavailable() is None else 0)
    if ran.code:
        assert "right: latency_ms is" in ran.err
        assert not (latest(two) / "two.anf").exists()


@pytest.mark.full
def test_it_is_reproduced(two: Project) -> None:
    ran = two.run("reproduce", "+recipe=two")
    assert ran.code == 0, ran.err
