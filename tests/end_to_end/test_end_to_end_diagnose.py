"""A build whose emulator and CPU disagree says where and why; one that agrees asks nothing; the verb asks on demand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from projects import Project, write_tiny, write_two

from anfbuild import qnn
from anfbuild.cli.app import main
from anfbuild.graph import pipeline
from anfbuild.graph.edit import PassResult

needs_compiler = pytest.mark.skipif(qnn.unavailable() is not None, reason=str(qnn.unavailable()))
BUILD = ("+recipe=mine", "quantization=a16w8_per_channel", "gates.agreement_lsb.max=2", "gates.accuracy_drop.max=10")


def upscaler() -> onnx.ModelProto:
    """A heat map by a ConvTranspose with an Add of a constant per channel behind it."""
    random = np.random.default_rng(0)
    constants = {
        **{"w1": random.normal(0, 0.3, (8, 3, 3, 3)), "w2": random.normal(0, 0.3, (8, 8, 2, 2))},
        **{"bias": random.normal(0, 3, (8, 1, 1)), "w3": random.normal(0, 0.1, (1, 8, 1, 1))},
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], "conv", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("ConvTranspose", ["c", "w2"], ["t"], "up", strides=[2, 2]),
        helper.make_node("Add", ["t", "bias"], ["a"], "add"),
        helper.make_node("Conv", ["a", "w3"], ["y"], "mix"),
        helper.make_node("Sigmoid", ["y"], ["z"], "sigmoid"),
    ]
    graph = helper.make_graph(
        nodes,
        "upscaler",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 32, 32])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 1, 32, 32])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of that model, in which this process is."""
    write_tiny(tmp_path / "project")
    onnx.save(upscaler(), tmp_path / "project" / "models" / "mine.onnx")
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("ANFBUILD_CACHE", str(tmp_path / "store"))
    return tmp_path / "project"


@needs_compiler
def test_a_silent_fault_of_the_chip_is_found_by_the_build(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As if `fold_affine` did not know the pair, which it takes apart in the twin below."""
    monkeypatch.setattr(pipeline.fold_affine, "run", lambda _: PassResult("fold_affine", 0))
    assert main([*BUILD]) == 3
    told = capsys.readouterr().err
    assert "agreement_lsb is" in told
    assert "stage emulated departs at node add (Add)" in told
    assert "Rule convtranspose-add, node up" in told
    assert "Fold the constant into the convolution's bias." in told
    folder = project / "artifacts" / "builds" / "mine" / "latest"
    diagnosis = json.loads((folder / "diagnosis.json").read_text(encoding="utf-8"))
    emulated = diagnosis["stages"][-1]
    assert [stage["passed"] for stage in diagnosis["stages"]] == [True, True, True, False]
    assert (emulated["departs"]["node"], emulated["departs"]["rule"]["rule"]) == ("add", "convtranspose-add")
    assert emulated["departs"]["confirmed"]
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert results["diagnosis"] == diagnosis["words"]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert page.count("<h2>Diagnosis</h2>") == 1
    assert "convtranspose-add" in page
    assert not (folder / "mine.anf").exists()

    assert main([*BUILD]) == 3, "the diagnosis is kept like any other step, the verdict is not"
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert all(step["hit"] for step in run["steps"])
    assert (folder / "report.html").read_text(encoding="utf-8") == page


@needs_compiler
def test_a_build_that_agrees_is_not_diagnosed_and_the_verb_finds_it_healthy(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*BUILD]) == 0
    folder = project / "artifacts" / "builds" / "mine" / "latest"
    assert not (folder / "diagnosis.json").exists()
    assert "diagnosis" not in json.loads((folder / "results.json").read_text(encoding="utf-8"))
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert "diagnose" not in {step["step"] for step in run["steps"]}
    capsys.readouterr()
    assert main(["diagnose", *BUILD, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["recipe"], document["exit_code"], document["healthy"]) == ("mine", 0, True)
    assert [stage["passed"] for stage in document["stages"]] == [True, True, True, True]


def test_each_component_is_diagnosed_or_the_one_that_is_named(tmp_path: Path, store: Path) -> None:
    write_two(tmp_path / "project")
    project = Project(tmp_path / "project", store)
    ran = project.run("diagnose", "+recipe=two", "--json")
    assert ran.code == 0, ran.err
    assert set(ran.document["components"]) == {"left", "right"}
    one = project.run("diagnose", "left", "+recipe=two")
    assert one.code == 0, one.err
    assert "left" in one.out
    assert "diagnose[right]" not in one.out
    wrong = project.run("diagnose", "lefd", "+recipe=two")
    assert wrong.code == 2
    assert "did you mean 'left'?" in wrong.err
