"""The steps that turn a model into another, each run alone on a small model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from anfbuild import graph
from anfbuild.engine.step import Job
from anfbuild.errors import StepError
from anfbuild.steps import GRAPH


def convolution() -> onnx.ModelProto:
    """x [N,3,8,8] -> Conv -> BatchNormalization -> Relu -> y, the batch left open, and another head."""
    rng = np.random.default_rng(0)
    values = {
        "w": rng.normal(size=(4, 3, 3, 3)),
        "scale": rng.uniform(0.5, 1, 4),
        "bias": rng.normal(size=4),
        "mean": rng.normal(size=4),
        "var": rng.uniform(0.5, 1, 4),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "bias", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["y"]),
        helper.make_node("Sigmoid", ["n"], ["head"]),
    ]
    tensors = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in values.items()]
    made = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", 3, 8, 8])],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["N", 4, 8, 8]) for name in ("y", "head")],
        tensors,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def run(root: Path, name: str, config: dict[str, Any], inputs: dict[str, Path]) -> Path:
    """Run one step of the graph in a folder of its own; its output folder."""
    step, folder = GRAPH[name], root / name
    (folder / "output").mkdir(parents=True)
    (folder / "scratch").mkdir()
    step.run(
        Job(
            config=step.config(**config),
            inputs=inputs,
            output=folder / "output",
            scratch=folder / "scratch",
            observe=lambda *_: None,
        )
    )
    return folder / "output"


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    (tmp_path / "source" / "model").mkdir(parents=True)
    onnx.save(convolution(), tmp_path / "source" / "model" / "net.onnx")
    (tmp_path / "source" / "source.json").write_text(json.dumps({"entry": "model/net.onnx"}))
    config = {
        "shapes": {"x": [1, 3, 8, 8]},
        "dtypes": {"x": "float32"},
        "module": None,
        "outputs": ["y"],
        "strict": True,
    }
    return run(tmp_path, "convert", config, {"fetch": tmp_path / "source"})


def test_convert_folds_fixes_and_cuts(converted: Path) -> None:
    model = graph.load(converted / "model.onnx")
    assert [node.op_type for node in model.graph.node] == ["Conv", "Relu"]
    facts = json.loads((converted / "convert.json").read_text())
    assert facts["interface"] == {
        "inputs": {"x": {"shape": [1, 3, 8, 8], "dtype": "float32"}},
        "outputs": {"y": {"shape": [1, 4, 8, 8], "dtype": "float32"}},
    }
    assert facts["macs"] == 4 * 8 * 8 * 3 * 3 * 3


def test_condition_leaves_the_results_equal(tmp_path: Path, converted: Path) -> None:
    conditioned = run(tmp_path, "condition", {"mask_clamp": -50.0, "equalize": False}, {"convert": converted})
    feeds = {"x": np.random.default_rng(1).normal(size=(1, 3, 8, 8)).astype(np.float32)}
    before = graph.Session(converted / "model.onnx").run(feeds)
    after = graph.Session(conditioned / "model.onnx").run(feeds)
    np.testing.assert_array_equal(before["y"], after["y"])
    assert json.loads((conditioned / "condition.json").read_text()) == {"rewrites": [], "notes": []}
    assert (conditioned / "model.onnx").read_bytes() == (converted / "model.onnx").read_bytes()


def test_condition_lists_what_it_rewrites(tmp_path: Path) -> None:
    mask = np.array([0, -np.inf], np.float32)
    nodes = [helper.make_node("Add", ["x", "mask"], ["s"], name="sum"), helper.make_node("Softmax", ["s"], ["y"])]
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3, 2]) for name in "xy"]
    made = helper.make_graph(nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(mask, "mask")])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (tmp_path / "converted").mkdir()
    graph.save(model, tmp_path / "converted" / "model.onnx")
    output = run(tmp_path, "condition", {"mask_clamp": -50.0, "equalize": False}, {"convert": tmp_path / "converted"})
    assert json.loads((output / "condition.json").read_text())["rewrites"] == [
        {"rewrite": "mask_clamp", "node": "sum", "op_type": "Add", "old": "-inf", "new": -50.0}
    ]
    (clamped,) = graph.load(output / "model.onnx").graph.initializer
    assert numpy_helper.to_array(clamped).tolist() == [0, -50]


def test_plan_of_the_htp_backend_is_one_block_with_the_models_own_ends(tmp_path: Path, converted: Path) -> None:
    planned = run(tmp_path, "plan", {"backend": "htp"}, {"quantize": converted})
    assert json.loads((planned / "plan.json").read_text()) == {
        "backend": "htp",
        "blocks": [{"name": "block_0", "unit": "HTP", "inputs": ["x"], "outputs": ["y"]}],
    }


def test_prepare_refuses_a_plan_that_it_cannot_compile(tmp_path: Path, converted: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"blocks": [{"unit": "HTP"}, {"unit": "CPU"}]}))
    config = {"soc_model": 57, "arch": "v75", "vtcm_mb": 8, "no_compiler": None}
    with pytest.raises(StepError, match="blocks on HTP, CPU"):
        run(tmp_path, "prepare", config, {"quantize": converted, "plan": tmp_path})
