"""What `lint` prints, and with which exit code it ends."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anfbuild.cli import main
from anfbuild.graph import clean
from anfbuild.graph.constraints import RULES, document
from anfbuild.quantization.rough import quantize_roughly

HOSTILE = "n\x1b[31m\x07<b>|\n\u202e"


def write(
    path: Path, *nodes: tuple[str, dict[str, Any]], name: str = "n", shape: Sequence[int | str] = (1, 8, 8, 8)
) -> Path:
    """x -> each of the nodes in turn -> y."""
    made, value = [], "x"
    for index, (op_type, attributes) in enumerate(nodes):
        result = "y" if index == len(nodes) - 1 else f"t{index}"
        inputs = [value, "w"] if op_type == "Conv" else [value]
        made.append(helper.make_node(op_type, inputs, [result], name=f"{name}{index or ''}", **attributes))
        value = result
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.ones((8, 8, 1, 1), np.float32), "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["lint", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_a_sound_model_ends_with_0(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "m.onnx", ("Conv", {}), ("Relu", {}))
    code, found = told(capsys, "m.onnx")
    assert code == found["exit_code"] == 0
    assert found["target"] == "sm8650"
    assert [placed["unit"] for placed in found["placement"]] == ["HTP", "HTP"]
    assert {finding["severity"] for finding in found["findings"]} == {"note"}
    (bound,) = found["nodes"]
    assert bound["node"] == "n"
    assert bound["macs"] == 8 * 8 * 8 * 8
    assert bound["bytes"] == 8 * 8 + 2 * 8 * 8 * 8
    assert bound["bound"] in ("compute", "dram", "vtcm", "overhead")


def test_what_would_stop_a_build_ends_with_3(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "m.onnx", ("Relu", {}), shape=("batch", 8))
    code, found = told(capsys, "m.onnx")
    assert code == 3
    (finding,) = [finding for finding in found["findings"] if finding["severity"] == "error"]
    assert finding["rule"] == "open-dimension"
    assert set(finding) == {
        *("node", "op_type", "rule", "severity", "message", "detail", "consequence", "remedy", "mended_by"),
    }
    assert told(capsys, "m.onnx", "model.inputs.x.shape=[1,8]")[0] == 0


def test_target_and_scheme_are_chosen_as_in_a_build(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "m.onnx", ("Conv", {}))
    code, found = told(capsys, "m.onnx", "target=qcs6490", "quantization=a16w16")
    assert (code, found["arch"], found["quantization"]) == (3, "v68", "a16w16")
    assert "wide-weights" in {finding["rule"] for finding in found["findings"]}
    assert told(capsys, "m.onnx", "quantization=made")[1]["quantization"] == "a16w8"  # the project's own file
    assert told(capsys, "m.onnx", "target=sm8450", "quantization=fp16")[0] == 0


def test_a_chip_without_rates_has_no_bounds_and_says_why(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "m.onnx", ("Conv", {}))
    found = told(capsys, "m.onnx", "target=sm7635")[1]
    assert found["nodes"] is None
    assert "rates" in found["reasons"]["/nodes"]
    main(["lint", "m.onnx", "target=sm7635"])
    assert "what bounds the nodes is not known: target.rates is missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["m.onnx", "dataset.samples=3"], "says nothing of a model alone"),
        (["m.onnx", "target=sm8651"], "did you mean 'sm8650'"),
        (["m.onnx", "quantization=int9"], "unknown quantization scheme"),
        (["m.onnx", "model.inputs.x.shape=[1,-1]"], "no list of sizes"),
        (["m.onnx", "model.inputs.z.shape=[1]"], "no input 'z'"),
        (["m.onnx", "model.outputs=[z]"], "no output 'z'"),
        (["m.onnx", "--sarif", "--json"], "two documents"),
        (["m.onnx", "n.onnx"], "takes 1 word"),
        ([], "none is named"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    words: list[str], says: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project / "m.onnx", ("Relu", {}))
    assert main(["lint", *words]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(("content", "says"), [(b"", "empty"), (b"\x08\x08not onnx", "not an ONNX"), (None, "no such")])
def test_what_is_no_model_ends_with_1(
    content: bytes | None, says: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (project / "m.onnx").write_bytes(content)
    assert main(["lint", "m.onnx"]) == 1
    assert says in capsys.readouterr().err


def test_weights_that_are_too_few_end_with_1(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(project / "m.onnx", ("Conv", {}))
    model = onnx.load(path)
    model.graph.initializer[0].raw_data = b"1234"
    onnx.save(model, path)
    assert main(["lint", "m.onnx"]) == 1
    assert "tensor 'w' has 4 bytes, but its type and shape say 256" in capsys.readouterr().err
    model.graph.initializer[0].ClearField("raw_data")  # not trained yet
    onnx.save(model, path)
    assert main(["lint", "m.onnx"]) == 0


def test_hostile_names_are_escaped_in_every_format(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "m.onnx", ("Atanh", {}), name=HOSTILE)
    assert main(["lint", "m.onnx"]) == 0
    text = capsys.readouterr().out
    assert "\\x1b[31m\\x07" in text
    assert "\x1b" not in text
    for option in ("--json", "--sarif"):
        main(["lint", "m.onnx", option])
        text = capsys.readouterr().out
        assert text.isascii()
        assert "\x1b" not in text
        assert json.dumps(HOSTILE) in text  # whole, as JSON escapes it


def test_sarif_has_the_shape_that_code_hosts_read(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "a model.onnx", ("Atanh", {}), ("Conv", {}), shape=("batch", 8, 4, 4))
    assert main(["lint", "a model.onnx", "--sarif"]) == 3
    log = json.loads(capsys.readouterr().out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    levels = {}
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["message"]["text"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20model.onnx"
        levels[result["ruleId"]] = result["level"]
    assert levels["open-dimension"] == "error"
    assert levels["cpu-operator"] == "warning"
    assert levels["longest-chain"] == "note"


def test_the_text_names_a_few_nodes_of_each_rule(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "m.onnx", *[("Atanh", {})] * 5)
    main(["lint", "m.onnx"])
    text = capsys.readouterr().out
    assert "5 on the CPU" in text
    assert "warning cpu-operator: " in text
    assert "and 2 more" in text
    assert RULES["cpu-operator"].remedy in text


def test_a_recipe_is_looked_at_with_its_own_shapes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "model.onnx", ("Relu", {}), shape=("batch", 3, "height", 32))
    (project / "conf" / "task" / "made.yaml").write_text("kind: text_detection\n")
    (project / "conf" / "dataset" / "made.yaml").write_text("kind: folder\npath: samples\n")
    code, found = told(capsys, "+recipe=plain")
    assert (code, found["model"], found["quantization"]) == (0, "plain", "int8_per_channel")
    assert main(["lint", "+recipe=plain", "model.inputs.x.shape=[1,3,32,33]"]) == 2


TWO = """\
defaults: [{override /dataset: made}, {override /task: made}, _self_]
model: {inputs: {x: {shape: [1, 3, 8, 8]}}}
components:
  one: {source: made}
  two: {source: made, quantization: made, model: {inputs: {x: {shape: [1, 3, 16, 16]}}}}
"""


def with_sound_groups(project: Path) -> None:
    (project / "conf" / "task" / "made.yaml").write_text("kind: text_detection\n")
    (project / "conf" / "dataset" / "made.yaml").write_text("kind: folder\npath: samples\n")


def test_every_component_of_a_recipe_is_looked_at(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "model.onnx", ("Relu", {}), ("Atanh", {}), shape=("batch", 3, "height", "width"))
    with_sound_groups(project)
    (project / "recipes" / "both.yaml").write_text(TWO)
    code, found = told(capsys, "+recipe=both")
    assert code == 0
    assert list(found["components"]) == ["one", "two"]
    assert [(placed["component"], placed["node"]) for placed in found["placement"]] == [
        (name, node) for name in ("one", "two") for node in ("n", "n1")
    ]
    assert {finding["component"] for finding in found["findings"]} == {"one", "two"}
    first, second = (bound["bytes"] for bound in found["nodes"] if bound["node"] == "n")
    assert second == first * 4 * 2  # 16 by 16 for 8 by 8, in 16 bits for 8
    assert found["quantization"] is None
    assert [part["quantization"] for part in found["components"].values()] == ["int8_per_channel", "a16w8"]
    assert found["reasons"]["/quantization"]
    main(["lint", "+recipe=both"])
    text = capsys.readouterr().out
    assert "component 'one': sm8650" in text
    assert "component 'two': sm8650" in text
    main(["lint", "+recipe=both", "--sarif"])
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    places = {result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] for result in run["results"]}
    assert {"one/n1", "two/n1"} <= places


def test_a_component_that_cannot_be_read_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "model.onnx").write_bytes(b"\x08\x08not onnx")
    with_sound_groups(project)
    (project / "recipes" / "both.yaml").write_text(TWO)
    assert main(["lint", "+recipe=both"]) == 1
    assert "component 'one'" in capsys.readouterr().err
    (project / "model.onnx").unlink()
    assert main(["lint", "+recipe=both"]) == 2
    assert "component 'one'" in capsys.readouterr().err


def test_sources_that_need_an_extra_name_it(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_sound_groups(project)
    (project / "saved").mkdir()
    (project / "saved" / "saved_model.pb").write_bytes(b"made")
    with zipfile.ZipFile(project / "script.pt", "w") as archive:
        archive.writestr("script/constants.pkl", b"")
    points = project / "site" / "nets-1.0.dist-info"
    points.mkdir(parents=True)
    (points / "METADATA").write_text("Metadata-Version: 2.1\nName: nets\nVersion: 1.0\n")
    (points / "RECORD").write_text("nets.py,,\n")
    (points / "entry_points.txt").write_text("[anfbuild.models]\nmine = nets:make\n")
    (project / "site" / "nets.py").write_text(
        "def make(): raise RuntimeError('lint runs no code in its own process')\n"
    )
    monkeypatch.syspath_prepend(project / "site")
    find_spec = importlib.util.find_spec
    makers = ("torch", "tensorflow")
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name, *rest: None if name in makers else find_spec(name, *rest)
    )
    sources = {"path: saved\nfile: .": "tensorflow", "path: script.pt": "torch", "kind: module\nname: mine": "torch"}
    for source, extra in sources.items():
        (project / "conf" / "source" / "made.yaml").write_text(
            f"kind: file\n{source}\n".replace("kind: file\nkind", "kind")
        )
        assert main(["lint", "+recipe=plain"]) == 1
        assert f"pip install 'anfbuild[{extra}]'" in capsys.readouterr().err
    for file, extra in {"saved": "tensorflow", "script.pt": "torch"}.items():
        assert main(["lint", file, "model.inputs.x.shape=[1,3,8,8]"]) == 1
        assert f"pip install 'anfbuild[{extra}]'" in capsys.readouterr().err


def test_a_quantized_model_is_looked_at_as_it_is(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project / "float.onnx", ("Conv", {}), ("Relu", {}))
    cleaned = clean(onnx.load(project / "float.onnx"), {}).model
    onnx.save(quantize_roughly(cleaned, "a16w8_per_channel"), project / "m.onnx")
    code, found = told(capsys, "m.onnx", "quantization=as_is")
    assert (code, found["quantization"]) == (0, "as_is")
    assert {placed["unit"] for placed in found["placement"]} <= {"HTP", "folded"}
    assert {finding["severity"] for finding in found["findings"]} == {"note"}
    wide = told(capsys, "float.onnx", "quantization=a16w8_per_channel")[1]
    assert [bound["bytes"] for bound in found["nodes"]] == [bound["bytes"] for bound in wide["nodes"]]
    code, found = told(capsys, "m.onnx")
    assert code == 3
    assert "quantization=as_is" in found["findings"][0]["remedy"]
    assert main(["lint", "float.onnx", "quantization=as_is"]) == 1
    assert "float model" in capsys.readouterr().err


def test_it_needs_no_runtime(project: Path) -> None:
    write(project / "m.onnx", ("Conv", {}))
    code = (
        "import sys; from anfbuild.cli import main; main(['lint', 'm.onnx']);"
        "heavy = {'onnxruntime', 'hydra', 'omegaconf', 'doit', 'rich', 'urllib3', 'onnx.reference'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_page_of_rules_and_operators_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--rules"]) == 0
    text = capsys.readouterr().out
    assert text == document()
    page = Path(__file__).parents[2] / "docs" / "supported-ops.md"
    assert text == page.read_text(encoding="utf-8"), "run: anfbuild lint --rules > docs/supported-ops.md"
    rules = json.loads((main(["lint", "--rules", "--json"]), capsys.readouterr().out)[1])["rules"]
    assert [rule["name"] for rule in rules] == list(RULES)
