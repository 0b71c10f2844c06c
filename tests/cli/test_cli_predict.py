"""`anfbuild predict` and `anfbuild fit`: what they take, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from anfbuild.cli import main


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small model whose weights are not there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANFBUILD_CACHE", str(tmp_path / "store"))
    weight = TensorProto(name="w", dims=[8, 3, 3, 3], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value="stripped")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1, 1, 1, 1])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 8, 32, 32])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    return tmp_path


@pytest.mark.usefixtures("project")
def test_a_model_without_weights_is_costed_on_several_chips(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "predict",
        "net.onnx",
        "target=sm8450,sm8650",
        "model.inputs.x.shape=[1,3,32,32]",
        "--no-compile",
        "--json",
    ]
    assert main(words) == 0
    rows = json.loads(capsys.readouterr().out)["predictions"]
    assert [row["target"] for row in rows] == ["sm8450", "sm8650"]
    for row in rows:
        assert row["interval90"][0] < row["latency_ms"] < row["interval90"][1]
        assert not row["calibrated"]
        assert row["energy_mj"] is None
        assert "/energy_mj" in row["reasons"]
        assert row["dram_mb"] is None
        assert "/dram_mb" in row["reasons"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["predict", "none.onnx"], "none.onnx"),
        (["predict", "net.onnx", "target=sm8651"], "sm8650"),
        (["predict", "net.onnx", "quantization=int9"], "int8"),
        (["predict", "net.onnx", "target=sm7750", "quantization=fp16"], "float16"),
        (["predict", "net.onnx", "gates=none"], "gates"),
        (["predict", "net.onnx", "--no-compile"], "model.inputs"),  # an open dimension: what to type is proposed
    ],
)
@pytest.mark.usefixtures("project")
def test_what_cannot_be_predicted_is_refused(capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    assert main(words) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model,precision,latency_s\nnet.onnx,w8a8,0.1\n", "latency_ms"),
        ("model,precision,latency_ms\nnet.onnx,w8a8,-1\n", "measured.csv:2"),
        ("model,precision,latency_ms\nnet.onnx,w8a8,1\nnet.onnx,w8a8,2\n", "twice"),
        ("model,precision,latency_ms\nnet.onnx,int3,1\n", "int3"),
    ],
)
def test_measurements_that_are_wrong_are_refused(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (project / "measured.csv").write_text(text, encoding="utf-8")
    assert main(["fit", "sm8650", "measured.csv"]) == 2
    assert said in capsys.readouterr().err


def test_the_model_of_these_tests_has_no_weights(project: Path) -> None:
    model = onnx.load(project / "net.onnx", load_external_data=False)
    assert model.graph.initializer[0].data_location == TensorProto.EXTERNAL
