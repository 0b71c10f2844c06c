"""MediaPipe's models, and every small one, against the reference interpreter. Needs ai-edge-litert and the network."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from extras import needed
from tflite_cases import CASES, Case, one_operator
from tflite_files import File

from anfbuild import graph, sources
from anfbuild.errors import StepError
from anfbuild.sources.readers import read

pytestmark = pytest.mark.full

MODULES = "mediapipe/modules"
TURNS = {
    "face_detection/face_detection_full_range_sparse": 2,
    "face_detection/face_detection_short_range": 5,
    "face_landmark/face_landmark": 1,
    "hand_landmark/hand_landmark_full": 1,
    "hand_landmark/hand_landmark_lite": 1,
    "holistic_landmark/hand_recrop": 1,
    "iris_landmark/iris_landmark": 1,
    "palm_detection/palm_detection_full": 5,
    "palm_detection/palm_detection_lite": 5,
    "pose_detection/pose_detection": 7,
    "pose_landmark/pose_landmark_full": 2,
    "selfie_segmentation/selfie_segmentation": 1,
    "selfie_segmentation/selfie_segmentation_landscape": 1,
}
"""Model -> Transposes: one at the input, one at each output that is an image, one before each Reshape of a detector's
heads, which reads the order of dimensions."""

ATTENTION = "face_landmark/face_landmark_with_attention"


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mediapipe")
    options = ["--no-deps", "--only-binary=:all:", "--python-version=3.11", "--platform=manylinux2014_x86_64"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *options, f"--dest={folder}", "mediapipe==0.10.14"]
    subprocess.run(command, check=True, timeout=sources.wheel.TIMEOUT_S)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        for name in [*TURNS, ATTENTION]:
            archive.extract(f"{MODULES}/{name}.tflite", folder)
    return folder / MODULES


def reference(path: Path, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    interpreter = needed("ai_edge_litert.interpreter").Interpreter(str(path))
    interpreter.allocate_tensors()
    for entry in interpreter.get_input_details():
        interpreter.set_tensor(entry["index"], feeds[entry["name"]])
    interpreter.invoke()
    return {entry["name"]: interpreter.get_tensor(entry["index"]) for entry in interpreter.get_output_details()}


def feeds_of(path: Path, seed: int) -> dict[str, np.ndarray]:
    session = graph.Session(read(path))
    random = np.random.default_rng(seed)

    def draw(dtype: Any, shape: Any) -> np.ndarray:
        if dtype.kind == "f":
            return random.uniform(0.1, 1, shape).astype(dtype)
        return random.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, endpoint=True).astype(dtype)

    return {name: draw(dtype, shape) for name, (dtype, shape) in session.inputs.items()}


@pytest.mark.parametrize("name", TURNS)
def test_mediapipes_models_agree_with_the_reference(models: Path, name: str) -> None:
    path = models / f"{name}.tflite"
    model = read(path)
    clean, _, _ = graph.clean(model, {})
    assert sum(node.op_type == "Transpose" for node in clean.graph.node) == TURNS[name]
    for seed in range(3):
        feeds = feeds_of(path, seed)
        expected = reference(path, feeds)
        for made in (model, clean):
            for output, found in graph.Session(made).run(feeds).items():
                assert np.abs(found - expected[output]).max() <= 3e-3 * np.ptp(expected[output]) + 1e-5


def test_the_model_with_mediapipes_own_operators_is_refused_by_name(models: Path) -> None:
    with pytest.raises(StepError, match="not supported") as caught:
        read(models / f"{ATTENTION}.tflite")
    assert "operator 192 (CUSTOM Landmarks2TransformMatrix)" in (caught.value.where or "")


@pytest.mark.parametrize("first", [False, True], ids=["own", "first"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operator_computes_what_the_reference_does(tmp_path: Path, case: Case, first: bool) -> None:
    path = tmp_path / "one.tflite"
    path.write_bytes(one_operator(case, first=first))
    feeds = feeds_of(path, 0)
    expected = reference(path, feeds)["y"]
    np.testing.assert_allclose(graph.Session(read(path)).run(feeds)["y"], expected, rtol=1e-5, atol=1e-5)


RESIZES = [
    (kind, align, half, out)
    for kind in ("BILINEAR", "NEAREST_NEIGHBOR")
    for align, half in ((False, False), (True, False), (False, True))
    for out in ((8, 10), (2, 5), (7, 3))
]


@pytest.mark.parametrize(("kind", "align", "half", "out"), RESIZES)
def test_resizing_finds_the_same_samples(
    tmp_path: Path, kind: str, align: bool, half: bool, out: tuple[int, int]
) -> None:
    file = File()
    x, y = file.tensor("x", (1, 4, 5, 2)), file.tensor("y", (1, *out, 2))
    table = "ResizeBilinearOptions" if kind == "BILINEAR" else "ResizeNearestNeighborOptions"
    options = (table, {"AlignCorners": align, "HalfPixelCenters": half})
    file.operator(f"RESIZE_{kind}", [x, file.constant(out, np.int32)], [y], options)
    path = file.save(tmp_path / "m.tflite", [x], [y])
    feeds = feeds_of(path, 0)
    np.testing.assert_allclose(graph.Session(read(path)).run(feeds)["y"], reference(path, feeds)["y"], atol=1e-5)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_a_quantized_model_agrees_within_a_step(tmp_path: Path, dtype: Any) -> None:
    file, middle = File(), 0 if dtype is np.int8 else 128
    encoded = {"dtype": dtype, "scale": [0.02], "zero_point": [middle + 4]}
    random = np.random.default_rng(2)
    x, hidden, pooled, y = (
        file.tensor(name, shape, **encoded)
        for name, shape in (("x", (1, 8, 8, 4)), ("h", (1, 4, 4, 4)), ("p", (1, 2, 2, 4)), ("y", (1, 2, 2, 4)))
    )
    low, high = (-127, 128) if dtype is np.int8 else (1, 256)
    weights = random.integers(low, high, (4, 3, 3, 4))
    w = file.constant(weights, dtype, scale=[0.004], zero_point=[middle])
    b = file.constant(random.integers(-500, 500, 4), np.int32, scale=[0.02 * 0.004])
    options = {"Padding": 0, "StrideH": 2, "StrideW": 2, "DilationHFactor": 1, "DilationWFactor": 1}
    file.operator("CONV_2D", [x, w, b], [hidden], ("Conv2DOptions", {**options, "FusedActivationFunction": 1}))
    pool = {"Padding": 1, "StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2}
    file.operator("MAX_POOL_2D", [hidden], [pooled], ("Pool2DOptions", pool))
    file.operator("ADD", [pooled, pooled], [y], ("AddOptions", {"FusedActivationFunction": 1}))
    path = file.save(tmp_path / "m.tflite", [x], [y])
    feeds = feeds_of(path, 0)
    found, expected = graph.Session(read(path)).run(feeds)["y"], reference(path, feeds)["y"]
    assert found.dtype == expected.dtype == dtype
    assert np.ptp(expected.astype(int)) > 40
    # One step of the convolution is two after the sum.
    assert np.abs(found.astype(int) - expected.astype(int)).max() <= 2
