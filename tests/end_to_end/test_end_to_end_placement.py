"""A model with a node that the HTP does not take: where each source node runs, and the contract that holds it there."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from projects import Project
from test_end_to_end_good import assert_complete

from anfbuild import qnn

pytestmark = pytest.mark.skipif(qnn.unavailable() is not None, reason=str(qnn.unavailable()))

BUILD = ("+recipe=mine", "~gates.partitions", "--json")


def write_model(project: Project, op: str, name: str = "odd") -> None:
    """first → turn → odd → back → last → norm → end, where odd is an `op` and called `name`."""

    def constant(name: str, *shape: int) -> onnx.TensorProto:
        return numpy_helper.from_array(np.full(shape, 0.1, np.float32), name)

    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "first", pads=[1] * 4),
        helper.make_node("Transpose", ["a"], ["b"], "turn", perm=[0, 2, 3, 1]),
        helper.make_node(op, ["b"], ["c"], name),
        helper.make_node("Transpose", ["c"], ["d"], "back", perm=[0, 3, 1, 2]),
        helper.make_node("Conv", ["d", "v"], ["e"], "last", pads=[1] * 4),
        helper.make_node("BatchNormalization", ["e", "s", "s", "s", "s"], ["f"], "norm"),
        helper.make_node("Sigmoid", ["f"], ["z"], "end"),
    ]
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 1, 32, 32]),
    ]
    constants = [constant("w", 1, 3, 3, 3), constant("v", 1, 1, 3, 3), constant("s", 1)]
    graph = helper.make_graph(nodes, "odd", ends[:1], ends[1:], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, project.folder / "models" / "mine.onnx")


def placed(project: Project) -> dict[str, dict[str, str]]:
    path = project.folder / "artifacts" / "builds" / "mine" / "latest" / "placement.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return {row["node"]: row for row in csv.DictReader(file)}


def placement(document: dict[str, Any]) -> dict[str, Any]:
    assert_complete(document["results"])
    found: dict[str, Any] = document["results"]["placement"]
    return found


def test_each_source_node_has_its_unit_and_its_reason_and_the_contract_holds_it(tiny: Project) -> None:
    write_model(tiny, "Erf")
    first = tiny.run(*BUILD)
    assert first.code == 0, first.err
    rows = placed(tiny)
    assert {name: row["unit"] for name, row in rows.items() if row["op_type"][-6:] != "Linear"} == {
        **dict.fromkeys(("first", "turn", "back", "last", "norm", "end"), "HTP"),
        "odd": "CPU",
    }
    assert rows["odd"]["reason"] == "the HTP does not take Erf in this form and precision"
    assert "`Erf` are not supported" in rows["odd"]["compiler"]
    assert "behind odd (Erf), which is on the CPU" in "".join(row["reason"] for row in rows.values())
    assert rows["norm"]["became"] == "last"
    told = placement(first.document)
    assert (told["nodes"], told["htp"], told["cpu"], told["unlisted"]) == (7, 6, 1, ["odd"])
    assert told["share"]["macs"] == {"htp": 1.0, "gpu": 0.0, "cpu": 0.0}
    assert told["share"]["time"]["htp"] is None
    assert first.document["contract"] is None

    accepted = tiny.run(*BUILD, "--accept")
    assert (accepted.code, accepted.steps_run) == (0, [])
    contract = tiny.folder / "recipes" / "mine.placement.csv"
    data = contract.read_bytes()
    assert b'"sm8650","int8_per_channel","main","odd","Erf","CPU"' in data
    assert placement(tiny.run(*BUILD).document)["unlisted"] == []

    write_model(tiny, "Erf", "odder")
    worse = tiny.run(*BUILD, "--junit", "junit.xml")
    assert worse.code == 3
    assert "1 node(s) left the HTP that recipes/mine.placement.csv does not list: odder (Erf) on the CPU" in worse.err
    assert "--accept" in worse.err
    assert placement(worse.document)["unlisted"] == ["odder"]
    assert 'classname="mine.contracts"' in (tiny.folder / "junit.xml").read_text(encoding="utf-8")
    assert not list((tiny.folder / "artifacts" / "builds" / "mine" / "latest").glob("*.anf"))
    assert contract.read_bytes() == data

    write_model(tiny, "Tanh")
    better = tiny.run(*BUILD)
    assert (better.code, better.document["contract"]["returned"]) == (0, ["odd"])
    assert placement(better.document)["share"]["time"] == {"htp": 1.0, "gpu": 0.0, "cpu": 0.0}

    write_model(tiny, "Erf")
    jobs = tiny.run("-m", "+recipe=mine", "~gates.partitions", "quantization=int8,int8_per_channel", "--json")
    assert jobs.code == 3
    assert [(job["exit_code"], job["contract"]["passed"]) for job in jobs.document["jobs"]] == [(3, False), (0, True)]


def test_a_conversion_tells_what_lint_finds_before_anything_is_calibrated(tiny: Project) -> None:
    write_model(tiny, "Erf")
    told = tiny.run("+recipe=mine", "~gates.partitions", "goal=convert")
    assert told.code == 0, told.err
    assert "cpu-operator, 1 time(s)" in told.out
    assert "anfbuild lint +recipe=mine" in told.out
    document = tiny.run("+recipe=mine", "~gates.partitions", "goal=convert", "--json").document
    assert [step["step"] for step in document["steps"] if not step["hit"]] == []
    (found,) = document["lint"]
    assert {node["node"]: node["unit"] for node in found["placement"]}["odd"] == "CPU"
    saved = json.loads((Path(document["folder"]) / "lint" / "lint.json").read_text(encoding="utf-8"))
    assert {**saved, "component": None} == found

    told = tiny.run("+recipe=mine", "~gates.partitions", "goal=lint")
    assert "cpu-operator, 1 time(s)" in told.out
    document = tiny.run("+recipe=mine", "~gates.partitions", "goal=lint", "--json").document
    assert document["lint"] == [found]


def test_an_edit_of_the_contract_runs_no_step(tiny: Project) -> None:
    assert tiny.run("+recipe=mine").code == 0
    head = "target,quantization,component,node,op_type,unit,reason\n"
    (tiny.folder / "recipes" / "mine.placement.csv").write_text(head, encoding="utf-8")
    held = tiny.run("+recipe=mine", "--json")
    assert (held.code, held.steps_run, held.document["contract"]["passed"]) == (0, [], True)
    (tiny.folder / "recipes" / "mine.placement.csv").write_text(f"{head}sm8650,int8\n", encoding="utf-8")
    refused = tiny.run("+recipe=mine")
    assert refused.code == 2
    assert "recipes/mine.placement.csv:2: 2 cells, where 7 belong" in refused.err


def test_the_contract_of_two_components_names_each(tmp_path: Path, store: Path) -> None:
    from projects import write_two

    write_two(tmp_path / "project")
    project = Project(tmp_path / "project", store)
    write_model(project, "Erf")
    build = ("+recipe=two", "~gates.partitions", "--json")
    ran = project.run(*build)
    assert placement(ran.document)["unlisted"] == ["left: odd"]
    assert ran.document["results"]["components"]["left"]["placement"]["unlisted"] == ["odd"]
    accepted = project.run(*build, "--accept")
    assert accepted.code == 0, accepted.err
    text = (project.folder / "recipes" / "two.placement.csv").read_text(encoding="utf-8")
    assert '"int8_per_channel","left","odd"' in text
    assert placement(accepted.document)["unlisted"] == []
    assert accepted.document["results"]["components"]["left"]["placement"]["unlisted"] == []
