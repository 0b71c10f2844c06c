"""`anfbuild fit`: a file of measurements is checked whole, and a chip's costs come of it."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from anfbuild.cli import main, targets
from anfbuild.cli.measurements import COLUMNS, read_measurements
from anfbuild.errors import RecipeError
from anfbuild.qnn import unavailable
from anfbuild.recipe.files import shipped

needs_compiler = pytest.mark.skipif(unavailable() is not None, reason="no compiler on this host")
AI_HUB = Path(__file__).parents[2] / "benchmarks" / "data" / "fidelity" / "measured.csv"
HEAD = "model,precision,latency_ms\n"
SM8650 = targets.chip("sm8650", Path("nowhere"))


def network(layers: int, channels: int) -> onnx.ModelProto:
    """Convolutions one after the other."""
    weights = [np.full((channels, 3 if not n else channels, 3, 3), 0.1, np.float32) for n in range(layers)]
    names = ["x", *(f"v{n}" for n in range(1, layers)), "y"]
    graph = helper.make_graph(
        [
            helper.make_node("Conv", [names[n], f"w{n}"], [names[n + 1]], name=f"conv{n}", pads=[1, 1, 1, 1])
            for n in range(layers)
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 64, 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, channels, 64, 64])],
        [numpy_helper.from_array(weight, f"w{n}") for n, weight in enumerate(weights)],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no project, with ten models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANFBUILD_CACHE", str(tmp_path / "store"))
    for number in range(10):
        model = network(1 + number % 3, 8 * (1 + number))
        (tmp_path / f"m{number}.onnx").write_bytes(model.SerializeToString())
    return tmp_path


def measure(folder: Path, rows: Sequence[str], head: str = HEAD) -> None:
    (folder / "measured.csv").write_text(head + "".join(f"{row}\n" for row in rows), encoding="utf-8")


def fitted(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["fit", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column 'model'"),
        ("model,precision,latency_s\nm0.onnx,w8a8,0.1\n", "give latency_ms"),
        ("model,precision,latency_ms,latency_ms\n", "2 times"),
        ("model,precison,latency_ms\n", "did you mean 'precision'"),
        (f"{HEAD}m0,w8a8\n", "measured.csv:2: 2 cells for 3"),
        (f"{HEAD}m0,w8a8,1,2\n", "measured.csv:2: 4 cells for 3"),
        (f'{HEAD}"m\n0",w8a8,1\n', "measured.csv:3: there is no model file"),
        (f"{HEAD}m0,w8a8,-1\n", "measured.csv:2: latency_ms"),
        (f"{HEAD}m0,w8a8,nan\n", "measured.csv:2: latency_ms"),
        (f"{HEAD}m0,w8a8,inf\n", "measured.csv:2: latency_ms"),
        (f"{HEAD}m0,w8a8,1 ms\n", "the number alone"),
        (f"{HEAD}m0,w8a8,\n", "measured.csv:2: latency_ms"),
        (f"{HEAD}m0,w8a9,1\n", "did you mean 'w8a8'"),
        (f"{HEAD}m99,w8a8,1\n", "--models FOLDER"),
        (f"{HEAD},w8a8,1\n", "there is no model file"),
        (f"{HEAD}m0,w8a8,1\nm0.onnx,w8a8,2\n", "measured.csv:3: m0.onnx in w8a8 is measured in line 2"),
        (f"{HEAD}m0,w8a8,1\nm1,w8a8,2\nm2,w8a8,3\n", "measured.csv:4: 3 models measured on sm8650 are too few"),
        ("model,precision,latency_ms,soc_model\nm0,w8a8,1,43\n", "1 rows: another chip"),
        ("model,precision,latency_ms,chipset\nm0,w8a8,1,any\n", "add a column soc_model".capitalize()),
        ("model,precision,latency_ms,layers_cpu\nm0,w8a8,1,3\n", "1 rows: in part on another unit"),
    ],
)
def test_measurements_that_are_wrong_are_refused_before_anything_is_compiled(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr("anfbuild.cli.verbs.fit.cost", None)
    (folder / "measured.csv").write_text(text, encoding="utf-8")
    assert main(["fit", "sm8650", "measured.csv"]) == 2
    assert said in capsys.readouterr().err
    assert not (folder / "conf").exists()


def test_what_is_no_csv_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (b"\xff\xfe", b'model,precision,latency_ms\n"m0', b"model,precision,latency_ms\nm0,w8a8,1\0\n"):
        (folder / "measured.csv").write_bytes(content)
        assert main(["fit", "sm8650", "measured.csv"]) == 2
        assert "measured.csv" in capsys.readouterr().err
    assert main(["fit", "sm8650", "none.csv"]) == 2
    assert "none.csv" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["mine", "measured.csv"], "--like TARGET"),
        (["sm8650", "measured.csv", "--like", "sm8651"], "did you mean 'sm8650'"),
        (["sm8650", "measured.csv", "--like", "sm7635"], "no costs to start from"),
        (["sm8650", "measured.csv", "target=sm8650"], "takes no 'target=sm8650'"),
        (["sm8650", "measured.csv", "--output", "measured.csv"], "there already"),
        (["sm8650", "measured.csv", "--output", str(shipped() / "conf" / "target" / "sm8650.yaml")], "anfbuild ships"),
    ],
)
def test_a_wrong_command_line_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    measure(folder, [f"m{n},w8a8,1" for n in range(10)])
    assert main(["fit", *words]) == 2
    assert said in capsys.readouterr().err


def test_rows_of_ai_hub_are_read_as_they_are(tmp_path: Path) -> None:
    with AI_HUB.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for name in {row["model"] for row in rows}:
        (tmp_path / f"{name}.onnx").touch()
    mine = [row for row in rows if row["soc_model"] == "57"]
    measured = read_measurements(AI_HUB, tmp_path, SM8650, 4)
    assert len(measured.rows) + measured.passed_over.get("in part on another unit than the HTP", 0) == len(mine)
    assert measured.passed_over["another chip"] == len(rows) - len(mine)
    assert {row.family for row in measured.rows} == {row["family"] for row in mine}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    st.lists(
        st.lists(st.one_of(st.sampled_from([*COLUMNS, "m0", "w8a8", "1"]), st.text(max_size=5)), max_size=4), max_size=4
    )
)
def test_any_file_is_read_or_refused(tmp_path: Path, rows: list[list[str]]) -> None:
    with (tmp_path / "any.csv").open("w", encoding="utf-8", newline="", errors="replace") as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(RecipeError) as error:
        read_measurements(tmp_path / "any.csv", tmp_path, SM8650, 4)
    assert "any.csv" in (error.value.where or "")
    assert error.value.remedy


@needs_compiler
def test_a_new_chip_is_fitted_and_predicted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("predict", "m3.onnx", "--json", "target=sm8650")
    assert main([*words]) == 0
    known = json.loads(capsys.readouterr().out)["predictions"][0]["latency_ms"]
    times = {}
    for number in range(10):
        assert main(["predict", f"m{number}.onnx", "--json"]) == 0
        times[number] = 3 * json.loads(capsys.readouterr().out)["predictions"][0]["latency_ms"]
    measure(folder, [f"m{number},w8a8,{ms}" for number, ms in times.items()])
    (folder / "conf" / "target").mkdir(parents=True)
    mine = folder / "conf" / "target" / "mine.yaml"
    mine.write_text("soc: sm8650\nname: Mine\nsoc_model: 57\narch: v75\nvtcm_mb: 8\n")
    found = fitted(capsys, "mine", "measured.csv", "--like", "sm8650")
    assert found["base"] == "sm8650"
    assert found["error"]["left_out"] == "model"
    assert found["error"]["median"] < 0.05
    assert found["error"]["by_precision"]["w8a8"]["rows"] == 10
    written = yaml.safe_load(mine.read_text())
    assert (written["name"], written["rates"]["fitted"]) == ("Mine", ["w8a8"])
    theirs = yaml.safe_load((shipped() / "conf" / "target" / "sm8650.yaml").read_text())["rates"]
    assert written["rates"]["conv_tmac_s"] == pytest.approx(theirs["conv_tmac_s"] / 3, rel=0.05)
    assert main(["predict", "m3.onnx", "target=mine", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["predictions"]
    assert row["latency_ms"] == pytest.approx(3 * known, rel=0.05)
    assert row["calibrated"]
    again = fitted(capsys, "mine", "measured.csv")
    assert again["base"] == "mine"
    assert all(math.isclose(again["costs"][name], cost, rel_tol=0.1) for name, cost in found["costs"].items())


@needs_compiler
def test_what_was_fitted_before_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measure(folder, [f"m{number},w8a8,{number % 3 + 1}" for number in range(5)])
    assert main(["fit", "sm8650", "measured.csv"]) == 0
    text = capsys.readouterr().out
    assert "one model left out at a time" in text
    assert "not the one anfbuild ships" in text
    written = yaml.safe_load((folder / "conf" / "target" / "sm8650.yaml").read_text())["rates"]
    theirs = yaml.safe_load((shipped() / "conf" / "target" / "sm8650.yaml").read_text())["rates"]
    assert written["fitted"] == theirs["fitted"]
    assert written["conv_tmac_s"] == theirs["conv_tmac_s"]
    assert written["compiled"] != theirs["compiled"]


@needs_compiler
def test_a_family_is_left_out_where_it_can_be(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head = "model,family,precision,latency_ms\n"
    measure(folder, [f"m{number},{number % 3},w8a8,{number + 1}" for number in range(10)], head)
    assert fitted(capsys, "sm7635", "measured.csv")["error"]["left_out"] == "family"
    measure(folder, [f"m{number},one,w8a8,{number + 1}" for number in range(5)], head)
    assert fitted(capsys, "sm7635", "measured.csv")["error"]["left_out"] == "model"
    measure(folder, [f"m{number},one,w8a8,{number + 1}" for number in range(4)], head)
    found = fitted(capsys, "sm7635", "measured.csv")
    assert found["error"] is None
    assert found["reasons"]["/error"]


@needs_compiler
def test_what_is_wrong_once_compiled_names_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "m2.onnx").write_bytes(b"\x08\x08rubbish")
    measure(folder, [f"m{number},w8a8,1" for number in range(4)])
    assert main(["fit", "sm8650", "measured.csv"]) == 1
    assert "measured.csv:4, m2.onnx" in capsys.readouterr().err
    measure(folder, [f"m{number},w8a8,{1000 * (number + 1)}" for number in range(4, 8)])
    assert main(["fit", "sm8650", "measured.csv"]) == 2
    assert "Give milliseconds" in capsys.readouterr().err
    assert not (folder / "conf").exists()
