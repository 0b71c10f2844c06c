"""A model that is quantized already goes through a whole build with its own encodings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from projects import Project, write_tiny


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write_tiny(tmp_path / "project")
    return Project(tmp_path / "project", tmp_path / "store")


def test_its_encodings_reach_the_package(project: Project) -> None:
    build = project.folder / "artifacts" / "builds" / "mine"
    assert project.run("+recipe=mine", "goal=quantize").code == 0
    quantized = next(build.glob("*/quantize/model.onnx"))
    first = json.loads((quantized.parent / "encodings.json").read_text())
    shutil.copyfile(quantized, project.folder / "models" / "quantized.onnx")
    ran = project.run("+recipe=mine", "quantization=as_is", "source.path=models/quantized.onnx")
    assert ran.code == 0, ran.err
    results = json.loads((build / "latest" / "results.json").read_text())
    assert results["quantization"] == "as_is"
    assert "keeps its encodings" in results["calibration"]["note"]
    kept = json.loads((build / "latest" / "encodings.json").read_text())
    assert {name: kept["activations"][name] for name in "xz"} == {name: first["activations"][name] for name in "xz"}


def test_a_float_model_is_refused_by_name(project: Project) -> None:
    ran = project.run("+recipe=mine", "quantization=as_is", "goal=quantize")
    assert ran.code == 1
    assert "is a float model" in ran.err
    assert "quantization=int8_per_channel" in ran.err
