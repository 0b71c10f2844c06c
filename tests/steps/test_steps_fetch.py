"""What the fetch step leaves of a source, and that convert finds the model in it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import onnx
from graph_models import conv_model

from anfbuild import graph
from anfbuild.engine.step import Job
from anfbuild.steps import GRAPH

_SOURCE = ("path", "url", "repo", "revision", "distribution", "name", "file", "python", "platform", "sha256")
_VOCABULARY = ("kind", "path", "distribution", "file", "sha256")
NOTHING = dict.fromkeys((*_SOURCE, *(f"vocabulary_{key}" for key in _VOCABULARY)))


def run(root: Path, name: str, config: dict[str, Any], inputs: dict[str, Path]) -> Path:
    step, folder = GRAPH[name], root / name
    for part in ("output", "scratch"):
        (folder / part).mkdir(parents=True)
    job = Job(step.config(**config), inputs, folder / "output", folder / "scratch", lambda *_: None)
    step.run(job)
    return folder / "output"


def test_a_file_on_this_machine_is_named_by_its_suffix_alone(tmp_path: Path) -> None:
    path = tmp_path / "my net.onnx"
    path.write_bytes(graph.serialize(conv_model()))
    fetched = run(tmp_path, "fetch", {**NOTHING, "kind": "file", "path": path}, {})
    said = json.loads((fetched / "source.json").read_text())
    assert said["entry"] == "model/model.onnx"
    assert said["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert "my net" not in json.dumps(said)  # one key, one result


def test_a_folder_comes_whole_and_is_converted(tmp_path: Path) -> None:
    folder = tmp_path / "split"
    folder.mkdir()
    model = conv_model()
    onnx.save(model, folder / "net.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    fetched = run(tmp_path, "fetch", {**NOTHING, "kind": "file", "path": folder, "file": "net.onnx"}, {})
    assert json.loads((fetched / "source.json").read_text())["entry"] == "model/net.onnx"
    shapes = {"x": [1, 3, 8, 8]}
    converted = run(
        tmp_path,
        "convert",
        {"shapes": shapes, "dtypes": {"x": "float32"}, "module": None, "outputs": None, "strict": False},
        {"fetch": fetched},
    )
    assert [node.op_type for node in graph.load(converted / "model.onnx").graph.node] == ["Conv", "Relu"]


def test_a_vocabulary_comes_with_the_model_or_is_empty(tmp_path: Path) -> None:
    path, words = tmp_path / "net.onnx", tmp_path / "my words.txt"
    path.write_bytes(graph.serialize(conv_model()))
    words.write_text("[PAD]\na\n")
    config = {**NOTHING, "kind": "file", "path": path}
    shapes = {
        "shapes": {"x": [1, 3, 8, 8]},
        "dtypes": {"x": "float32"},
        "module": None,
        "outputs": None,
        "strict": False,
    }
    found = []
    for name, more in (("with", {"vocabulary_kind": "file", "vocabulary_path": words}), ("without", {})):
        fetched = run(tmp_path / name, "fetch", config | more, {})
        assert not list(fetched.rglob("*my words*"))  # one key, one result
        converted = run(tmp_path / name, "convert", shapes, {"fetch": fetched})
        found.append(json.loads((converted / "vocabulary" / "vocabulary.json").read_text()))
    assert found == [["[PAD]", "a"], []]
