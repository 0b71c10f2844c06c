"""A model that is no ONNX file goes all the way to a QDQ model, and its faults are told by the recipe's words."""

from __future__ import annotations

import json

import numpy as np
from projects import Project
from tflite_files import File

from anfbuild import graph

NHWC = "model.inputs.x={shape: [1,32,32,3], layout: NHWC, scale: 0.00392156862745098}"


def heat_map(kind: str = "LOGISTIC") -> bytes:
    file = File()
    x, hidden, z = file.tensor("x", (1, 32, 32, 3)), file.tensor("h", (1, 32, 32, 1)), file.tensor("z", (1, 32, 32, 1))
    weights, bias = file.constant(np.full((1, 3, 3, 3), 0.1)), file.constant([0.0])
    options = {"Padding": 0, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    file.operator("CONV_2D", [x, weights, bias], [hidden], ("Conv2DOptions", options))
    file.operator(kind, [hidden], [z])
    return file.write([x], [z])


def test_a_tensorflow_lite_model_is_quantized(tiny: Project) -> None:
    (tiny.folder / "models" / "mine.tflite").write_bytes(heat_map())
    ran = tiny.run("+recipe=mine", "source.path=models/mine.tflite", NHWC, "goal=quantize", "--json")
    assert ran.code == 0, ran.err
    made = graph.load(next((tiny.folder / "artifacts").rglob("quantize/model.onnx")))
    assert graph.interface(made)["inputs"]["x"]["shape"] == [1, 32, 32, 3]
    encodings = json.loads(next((tiny.folder / "artifacts").rglob("encodings.json")).read_text())["activations"]
    assert {"x", "z"} <= encodings.keys()


def test_an_operator_without_a_reader_is_told_with_the_recipes_line(tiny: Project) -> None:
    (tiny.folder / "models" / "mine.tflite").write_bytes(heat_map("MyOwn"))
    ran = tiny.run("+recipe=mine", "source.path=models/mine.tflite", NHWC)
    assert ran.code == 1
    assert "models/mine.tflite (command line), operator 1 (CUSTOM MyOwn): the operator is not supported" in ran.err
    assert "Traceback" not in ran.err
