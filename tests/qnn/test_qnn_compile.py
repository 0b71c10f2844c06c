"""Real compiles by the vendor's compiler, of models that take it well under a second."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from anfbuild.errors import RecipeError, StepError
from anfbuild.graph import Session
from anfbuild.qnn import Options, unavailable
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.compiled import Compiled
from anfbuild.qnn.emulate import emulate, online_prepare_ms

pytestmark = pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))

SM8650 = Options(57, "v75", 8)
ModelMaker = Callable[..., bytes]


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def compiled(make_model: ModelMaker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Compiled, Path]:
    folder = tmp_path_factory.mktemp("one") / "context"
    return compile_context(make_model(), SM8650, folder), folder


def test_the_same_model_gives_the_same_bytes_in_another_process_and_folder(
    compiled: tuple[Compiled, Path], make_model: ModelMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    again = compile_context(make_model(), SM8650, tmp_path / "two")
    assert digests(tmp_path / "two") == digests(compiled[1])
    assert set(digests(compiled[1])) == {"model.onnx", "model_qnn.bin"}
    assert again == compiled[0]
    assert json.dumps(again.to_json()) == json.dumps(compiled[0].to_json())


def test_what_is_traced_does_not_change_the_binary(
    compiled: tuple[Compiled, Path], make_model: ModelMaker, tmp_path: Path
) -> None:
    other = Options(57, "v75", 8, performance_mode="burst")
    compile_context(make_model(), other, tmp_path / "burst")
    assert digests(tmp_path / "burst") == digests(compiled[1])
    compile_context(make_model(), Options(57, "v75", 2), tmp_path / "small")
    assert digests(tmp_path / "small") != digests(compiled[1])


def test_the_record_says_what_was_built(compiled: tuple[Compiled, Path]) -> None:
    record, folder = compiled
    assert (record.soc_model, record.soc, record.arch, record.vtcm_mb) == (57, "SM8650", "v75", 8)
    assert record.qnn_build.startswith(f"v{record.qnn_version}.")
    assert record.files == {path.name: path.stat().st_size for path in folder.iterdir()}
    assert record.partitions == 1
    assert record.integer
    units = {verdict.node: verdict.unit for verdict in record.verdicts}
    assert units.pop("in_Q") == units.pop("prob_DQ") == "CPU"  # the graph's own float input and output
    assert set(units.values()) == {"HTP"}
    assert record.traffic_mb is not None
    assert record.traffic_mb["dram_read_mb"] > 0
    assert record.traffic_mb["spill_mb"] == 0


def test_the_record_survives_json(compiled: tuple[Compiled, Path]) -> None:
    text = json.dumps(compiled[0].to_json())
    assert Compiled.from_json(json.loads(text)) == compiled[0]
    assert tempfile.gettempdir() not in text
    with pytest.raises(StepError):
        Compiled.from_json({"soc": "SM8650"})


def test_a_node_that_the_htp_lacks_falls_to_the_cpu_and_is_told(make_model: ModelMaker, tmp_path: Path) -> None:
    record = compile_context(make_model(erf=True), SM8650, tmp_path / "c")
    verdicts = {verdict.node: verdict for verdict in record.verdicts}
    assert verdicts["erf"].unit == "CPU"
    assert "Erf" in verdicts["erf"].reason
    assert (verdicts["conv"].partition, verdicts["conv2"].partition, record.partitions) == (0, 1, 2)


def test_a_float_model_is_seen_in_the_data_types(make_model: ModelMaker, tmp_path: Path) -> None:
    record = compile_context(make_model(quantized=False), SM8650, tmp_path / "c")
    assert not record.integer
    assert record.float_tensors > 0


def test_a_precision_that_the_chip_lacks_is_refused_with_qnns_reason(make_model: ModelMaker, tmp_path: Path) -> None:
    model = make_model(activation=np.uint16, weight=np.int16)
    with pytest.raises(StepError, match="not possible on SM8350") as error:
        compile_context(model, Options(30, "v68"), tmp_path / "c")
    assert error.value.where == "node conv"
    assert "expected >= 73" in error.value.what
    assert list((tmp_path / "c").iterdir()) == []


def test_another_target_than_asked_is_refused(
    make_model: ModelMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Options, "provider_options", lambda _: {"soc_model": "43"})
    with pytest.raises(StepError, match="soc_model is 43, not 57"):
        compile_context(make_model(), SM8650, tmp_path / "c")
    assert list((tmp_path / "c").iterdir()) == []


def test_a_model_with_nothing_for_the_htp_is_refused_with_the_reason(tmp_path: Path) -> None:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 8]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Erf", ["x"], ["y"], name="erf")], "g", values[:1], values[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    with pytest.raises(StepError, match="nothing of the model can run on the HTP") as error:
        compile_context(model.SerializeToString(), SM8650, tmp_path / "c")
    assert "erf" in error.value.what


def test_wrong_options_and_models_are_refused_before_any_work(make_model: ModelMaker, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="unknown SoC"):
        compile_context(make_model(), Options(999, "v75"), tmp_path / "c")
    with pytest.raises(StepError, match="not an ONNX file"):
        compile_context(b"no model", SM8650, tmp_path / "c")
    unnamed = onnx.load_from_string(make_model())
    unnamed.graph.node[0].name = ""
    with pytest.raises(StepError, match="without a name"):
        compile_context(unnamed.SerializeToString(), SM8650, tmp_path / "c")
    assert not (tmp_path / "c").exists()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/model.onnx").touch()
    with pytest.raises(StepError, match="not empty"):
        compile_context(make_model(), SM8650, tmp_path / "full")


def test_the_emulator_agrees_with_the_cpu(compiled: tuple[Compiled, Path], make_model: ModelMaker) -> None:
    random = np.random.default_rng(1)
    feeds = [{"x": random.random((1, 3, 16, 16), dtype=np.float32)} for _ in range(2)]
    result = emulate(compiled[1], feeds, SM8650)
    session = Session(onnx.load_from_string(make_model()))
    assert result.load_ms > 0
    for feed, got in zip(feeds, result.outputs, strict=True):
        assert list(got) == ["y"]
        levels = np.abs(got["y"] - session.run(feed)["y"]) * 256
        assert levels.max() <= 2
    assert not np.array_equal(result.outputs[0]["y"], result.outputs[1]["y"])


def test_a_damaged_binary_and_another_chip_are_refused(compiled: tuple[Compiled, Path], tmp_path: Path) -> None:
    feed = [{"x": np.zeros((1, 3, 16, 16), np.float32)}]
    with pytest.raises(StepError, match="for soc_model 57, not for SM8550"):
        emulate(compiled[1], feed, Options(43, "v73"))
    shutil.copytree(compiled[1], tmp_path / "cut")
    binary = tmp_path / "cut/model_qnn.bin"
    binary.write_bytes(binary.read_bytes()[:20_000])
    with pytest.raises(StepError, match="could not run the context binary"):
        emulate(tmp_path / "cut", feed, SM8650)


def test_a_feed_of_another_shape_is_refused(compiled: tuple[Compiled, Path]) -> None:
    with pytest.raises(StepError, match="could not run the context binary"):
        emulate(compiled[1], [{"x": np.zeros((1, 3, 8, 8), np.float32)}], SM8650)


def test_online_prepare_is_timed_on_the_htp_alone(make_model: ModelMaker) -> None:
    assert online_prepare_ms(make_model(), SM8650) > 0
