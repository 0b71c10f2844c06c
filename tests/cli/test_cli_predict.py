"""`anfbuild predict`: what it takes, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anfbuild.cli import main
from anfbuild.errors import StepError, Unavailable
from anfbuild.graph import clean
from anfbuild.qnn import unavailable
from anfbuild.quantization.rough import quantize_roughly


def network(*, weights: bool = True, batch: int | str = 1) -> onnx.ModelProto:
    """One convolution, with its weights, or with none."""
    weight = numpy_helper.from_array(np.full((8, 3, 3, 3), 0.1, np.float32), "w")
    if not weights:
        weight = TensorProto(name="w", dims=[8, 3, 3, 3], data_type=TensorProto.FLOAT)
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="stripped")
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w"], ["y"], name="conv", pads=[1, 1, 1, 1])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 3, 32, 32])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [batch, 8, 32, 32])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no project, with a model without weights, one of an open batch, and a quantized one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANFBUILD_CACHE", str(tmp_path / "store"))
    (tmp_path / "net.onnx").write_bytes(network(weights=False).SerializeToString())
    (tmp_path / "open.onnx").write_bytes(network(batch="n").SerializeToString())
    quantized = quantize_roughly(clean(network(), {}).model, "int8_per_channel")
    (tmp_path / "quantized.onnx").write_bytes(quantized.SerializeToString())
    return tmp_path


def predicted(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["predict", *words, "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["predictions"]
    return rows


@pytest.mark.usefixtures("folder")
def test_a_table_of_chips_and_schemes(capsys: pytest.CaptureFixture[str]) -> None:
    rows = predicted(capsys, "net.onnx", "target=sm8450,sm8650", "quantization=int8_per_channel,fp16", "--no-compile")
    assert [(row["target"], row["quantization"]) for row in rows] == [
        (target, scheme) for target in ("sm8450", "sm8650") for scheme in ("int8_per_channel", "fp16")
    ]
    for row in rows:
        assert row["interval90"][0] < row["latency_ms"] < row["interval90"][1]
        assert not row["calibrated"]
        assert [node["name"] for node in row["nodes"]] == ["conv"]
        assert row["blocks"] == len(row["traffic_model"]["blocks"]) == 1
        assert row["memory"]["weights"] > 0
        for key in ("dram_mb", "energy_mj", "memory_mb"):
            assert row[key] is None
            assert row["reasons"][f"/{key}"]


@pytest.mark.skipif(unavailable() is not None, reason="no compiler on this host")
@pytest.mark.usefixtures("folder")
def test_a_compile_tells_traffic_and_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = predicted(capsys, "net.onnx")
    assert row["compiled"]
    assert row["calibrated"]
    assert row["dram_mb"] > 0
    assert row["energy_mj"] > 0
    assert row["memory_mb"] == row["memory"]["peak"] > row["memory"]["weights"]
    assert not {"/dram_mb", "/energy_mj", "/memory_mb"} & set(row["reasons"])
    assert main(["predict", "net.onnx"]) == 0
    text = capsys.readouterr().out
    assert "lower      cached" in text
    assert "memory MB" in text
    assert [row["latency_ms"]] == [again["latency_ms"] for again in predicted(capsys, "net.onnx")]


@pytest.mark.usefixtures("folder")
def test_a_quantized_model_is_costed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = predicted(capsys, "quantized.onnx", "quantization=as_is", "--no-compile")
    (rough,) = predicted(capsys, "net.onnx", "--no-compile")
    assert row["latency_ms"] == rough["latency_ms"]


@pytest.mark.usefixtures("folder")
def test_an_open_dimension_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = predicted(capsys, "open.onnx", "model.inputs.x.shape=[1,3,32,32]", "--no-compile")
    (fixed,) = predicted(capsys, "net.onnx", "--no-compile")
    assert row["latency_ms"] == fixed["latency_ms"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["none.onnx"], 2, "none.onnx"),
        (["net.onnx", "target=sm8651"], 2, "did you mean 'sm8650'"),
        (["net.onnx", "target=sm8650,"], 2, "target=A,B"),
        (["net.onnx", "target=sm7635"], 2, "target.rates"),  # a chip of the table, without rates
        (["net.onnx", "quantization=int9"], 2, "did you mean 'int8'"),
        (["net.onnx", "target=sm7750", "quantization=fp16"], 2, "float16"),
        (["net.onnx", "target=sm8450", "quantization=a16w16"], 2, "v73 or newer"),
        (["net.onnx", "performance=brust"], 2, "did you mean 'burst'"),
        (["net.onnx", "gates=none"], 2, "model alone"),
        (["net.onnx", "model.inputs.x.shape=1"], 2, "no list of sizes"),
        (["net.onnx", "model.inputs.x.dtype=flaot32", "model.inputs.x.shape=[1]"], 2, "did you mean 'float32'"),
        (["net.onnx", "model.inputs.x.dtype=float32"], 2, "no shape"),
        (["open.onnx", "--no-compile"], 2, "model.inputs.x.shape"),
        (["net.onnx", "quantization=as_is", "--no-compile"], 1, "float model"),
        (["quantized.onnx", "--no-compile"], 1, "quantization=as_is"),
        (["quantized.onnx", "quantization=fp16", "--no-compile"], 1, "quantization=as_is"),
        (["torn.onnx"], 1, "cut short"),
        (["weights.safetensors"], 1, "weights alone"),
        (["saved"], 1, "anfbuild[tensorflow]"),
        (["program.pt2"], 1, "anfbuild[torch]"),
        (["."], 1, "saved_model.pb"),
    ],
)
def test_what_cannot_be_predicted_is_refused_by_name(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    (folder / "torn.onnx").write_bytes((folder / "open.onnx").read_bytes()[:60])
    (folder / "weights.safetensors").write_bytes(b"\0" * 16)
    (folder / "program.pt2").write_bytes(b"made")
    (folder / "saved").mkdir()
    (folder / "saved" / "saved_model.pb").write_bytes(b"made")
    monkeypatch.setattr("importlib.util.find_spec", without("torch", "tensorflow"))
    assert main(["predict", *words]) == code
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert "unexpected" not in error


def without(*names: str) -> Any:
    """`find_spec` of a host that lacks these."""
    from importlib.util import find_spec

    return lambda name, *rest: None if name in names else find_spec(name, *rest)


def test_sizes_that_are_not_there_are_not_made_up(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = network()
    model.graph.node.append(helper.make_node("Reshape", ["y", "sizes"], ["z"], name="reshape"))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("z", TensorProto.FLOAT, None))
    sizes = model.graph.initializer.add(name="sizes", dims=[2], data_type=TensorProto.INT64)
    sizes.data_location = TensorProto.EXTERNAL
    sizes.external_data.add(key="location", value="stripped")
    (folder / "sizes.onnx").write_bytes(model.SerializeToString())
    assert main(["predict", "sizes.onnx", "--no-compile"]) == 1
    assert "size_threshold" in capsys.readouterr().err


@pytest.mark.usefixtures("folder")
@pytest.mark.skipif(unavailable() is not None, reason="no compiler on this host")
def test_only_a_host_that_lacks_something_falls_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compile_context(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr("anfbuild.qnn.compile.compile_context", compile_context)
    error: Exception = Unavailable("the QNN worker took more than 1 GB")
    (row,) = predicted(capsys, "net.onnx")
    assert not row["compiled"]
    assert not row["calibrated"]
    assert "took more than 1 GB" in row["reasons"]["/dram_mb"]
    error = StepError("the compiler refused the model")
    assert main(["predict", "net.onnx"]) == 1
    told = capsys.readouterr().err
    assert "sm8650, int8_per_channel: the compiler refused the model" in told
    assert "--no-compile" in told


def test_a_target_of_the_projects_own_comes_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = predicted(capsys, "net.onnx", "--no-compile")
    own = folder / "conf" / "target"
    own.mkdir(parents=True)
    values = "soc: sm8650\nname: Mine\nsoc_model: 57\narch: v75\nvtcm_mb: 8\n"
    (own / "mine.yaml").write_text(f"{values}rates: {{conv_tmac_s: 1, weight_gb_s: 1, fixed_ms: 1}}\n")
    (own / "slower.yaml").write_text("defaults: [mine, _self_]\nrates: {fixed_ms: 2}\n")
    mine, slower = predicted(capsys, "net.onnx", "target=mine,slower", "--no-compile")
    assert row["latency_ms"] < 1 < mine["latency_ms"] < 2 < slower["latency_ms"]
    assert slower["latency_ms"] - mine["latency_ms"] == pytest.approx(1)
    (own / "mine.yaml").write_text(f"{values.replace('57', '43')}rates: {{}}\n")
    assert main(["predict", "net.onnx", "target=mine"]) == 2
    assert "target.arch" in capsys.readouterr().err
