"""Bad input gets a clear error: the thing, the place, the choices and the next step. And nothing is lost by it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from PIL import Image
from projects import Project, tiny_model

Change = Callable[[Path], object]


@pytest.fixture
def good(tiny: Project) -> Project:
    """A project that has been built, so that its recipe is known to be good."""
    ran = tiny.run("+recipe=mine", "--json")
    assert ran.code == 0, ran.err
    return tiny


def refused(project: Project, code: int, words: list[str], *overrides: str) -> None:
    """The build ends with `code`, says all `words` on stderr, and the good recipe is still all in the store."""
    ran = project.run("+recipe=mine", *overrides)
    assert ran.code == code, ran.err
    for word in words:
        assert word in ran.err
    assert "Traceback" not in ran.err + ran.out
    assert str(project.store) not in ran.err  # a place inside of the store is of no use to anybody
    again = project.run("+recipe=mine", "--json")
    assert again.code == 0, again.err
    assert again.steps_run == []


def edit(project: Project, old: str, new: str) -> None:
    recipe = project.folder / "recipes" / "mine.yaml"
    text = recipe.read_text(encoding="utf-8")
    assert old in text
    recipe.write_text(text.replace(old, new), encoding="utf-8")


# ---- the model


def write(path: Path, model: onnx.ModelProto) -> None:
    path.write_bytes(model.SerializeToString())


def two_inputs() -> onnx.ModelProto:
    """A model with an input `image`, three dimensions open, that the recipe does not mention."""
    model = tiny_model()
    image = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, "H", "W"])
    model.graph.input.append(image)
    model.graph.node.append(helper.make_node("Sigmoid", ["image"], ["v"], "other"))
    model.graph.output.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, ["N", 3, "H", "W"]))
    return model


def cut_short(path: Path) -> None:
    path.write_bytes(tiny_model().SerializeToString()[:150])


def outside(path: Path) -> None:
    """A model whose weights lie beside it, which a source of one file does not bring."""
    onnx.save(tiny_model(), path, save_as_external_data=True, location="w.bin", size_threshold=0)


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (lambda _: None, 2, ["bad.onnx does not exist", "source.path", "command line", "Correct the path"]),
        (lambda path: path.write_bytes(b""), 1, ["models/bad.onnx", "is empty", "Take the right file"]),
        (lambda path: path.write_text("no model"), 1, ["models/bad.onnx", "not an ONNX", "Export the model again"]),
        (cut_short, 1, ["models/bad.onnx (command line)", "cut short", "Export the model again"]),
        (lambda path: path.mkdir(), 1, ["bad.onnx is a folder", "source.path", "Name the file in it"]),
        (
            lambda path: write(path, tiny_model(op="Conw")),
            1,
            ["models/bad.onnx (command line), node conv (Conw)", "No Op registered for Conw", "Export the model again"],
        ),
        (outside, 1, ["models/bad.onnx", "external data", "Save the model as one file"]),
    ],
)
def test_a_bad_model(good: Project, change: Change, code: int, words: list[str]) -> None:
    change(good.folder / "models" / "bad.onnx")
    refused(good, code, words, "source.path=models/bad.onnx")


def test_another_digest_than_the_pinned_one(good: Project) -> None:
    words = ["models/mine.onnx is not the pinned file", "its SHA-256 is", "expected 0000", "source.sha256"]
    refused(good, 1, words, f"source.sha256='{'0' * 64}'")


def test_open_dimensions_are_listed_with_values_to_try(tiny: Project) -> None:
    onnx.save(two_inputs(), tiny.folder / "models" / "open.onnx")
    ran = tiny.run("+recipe=mine", "source.path=models/open.onnx")
    assert ran.code == 2
    for word in (
        "'image' dimension 0 (N): try 1",
        "'image' dimension 2 (H): try",
        "'image' dimension 3 (W)",
        "recipes/mine.yaml:10",
    ):
        assert word in ran.err
    assert "Fix them, for example: model.inputs.image.shape=[1,3," in ran.err
    fixed = "+model.inputs.image.shape=[1,3,32,32]"
    assert tiny.run("+recipe=mine", "source.path=models/open.onnx", "goal=convert", fixed).code == 0


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "model.inputs.x.shape=[1,3,64,32]",
            [
                "command line (model.inputs.x.shape)",
                "dimension 2 is 64",
                "the model fixes it at 32",
                "Set dimension 2 to 32",
            ],
        ),
        ("model.inputs.x.shape=[2,3,32,32]", ["one image is a batch of 1, not 2"]),
        ("model.inputs.x.shape=[1,3,32]", ["needs four fixed dimensions"]),
        ("model.inputs.x.shape=[1,3,-1,32]", ["shape[2]' is -1", "at least 1"]),
        (
            "model.inputs.x.layout=NHWC",
            ["mine.yaml:10 (model.inputs.x.shape)", "RGB has 3 channels", "Correct the layout"],
        ),
        ("model.inputs.x.dtype=int64", ["valid choices: float32, uint8"]),
        (
            "+model.inputs.y.shape=[1,3,32,32]",
            ["command line (model.inputs.y)", "the model has no input 'y'", "valid choices: x"],
        ),
        ("model.outputs=[q]", ["the model has no output 'q'", "valid choices: z"]),
    ],
)
def test_inputs_and_outputs_that_the_model_has_not(good: Project, override: str, words: list[str]) -> None:
    refused(good, 2, words, override)


# ---- the data


def repaint(folder: Path, paint: Callable[[int, Path], object]) -> None:
    for index in range(9):
        paint(index, folder / f"{index}.png")


def same_truth(quads: object) -> Change:
    def change(folder: Path) -> None:
        truth = {f"{index}.png": {"quads": quads} for index in range(9)}
        (folder / "truth.json").write_text(json.dumps(truth), encoding="utf-8")

    return change


def remove_images(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (remove_images, ["bad has 0 different images for calibration, 2 wanted", "Add images"]),
        (lambda folder: repaint(folder, lambda i, path: path.write_text(f"no image {i}")), ["not an image"]),
        (
            lambda folder: repaint(folder, lambda i, path: path.write_bytes(path.read_bytes()[: 800 + i])),
            [".png is damaged: image file is truncated"],
        ),
        (
            lambda folder: (folder / "truth.json").write_text("{}"),
            [".png has no ground truth 'quads'", "Give it in truth.json"],
        ),
        (lambda folder: (folder / "truth.json").write_text("{"), ["truth.json: the ground truth is", "Write"]),
        (same_truth([[1, 2, 3]]), ["of sample ", ".png is not a list of 4 points", "Give it in truth.json"]),
        (same_truth([[[1, float("nan")]] * 4]), ["truth.json: the ground truth is not JSON", "NaN", "Write"]),
        (same_truth("word"), ["of sample ", ".png are not a list", "Give it in truth.json"]),
        (same_truth([[[1, 1]] * 4]), ["of sample ", ".png has no area", "Give it in truth.json"]),
        (same_truth([]), ["any text in the ground truth"]),
    ],
)
def test_bad_data(good: Project, change: Change, words: list[str]) -> None:
    bad = good.folder / "bad"
    bad.mkdir()
    for path in (good.folder / "data").iterdir():
        (bad / path.name).write_bytes(path.read_bytes())
    change(bad)
    refused(good, 1, words, "dataset.path=bad")


@pytest.mark.parametrize(
    ("override", "code", "words"),
    [
        ("dataset.path=date", 2, ["date does not exist", "valid choices: data", "Correct the path"]),
        ("dataset.path=models/mine.onnx", 1, ["mine.onnx is not a folder", "Name a folder with images"]),
        ("dataset.samples=7", 1, ["has 6 different images for calibration, 7 wanted"]),
        ("evaluation.samples=4", 1, ["has 3 different images for evaluation, 4 wanted"]),
    ],
)
def test_data_that_is_not_there(good: Project, override: str, code: int, words: list[str]) -> None:
    refused(good, code, words, override)


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "1"])
def test_images_of_any_mode_and_size_are_taken(tiny: Project, mode: str) -> None:
    def paint(index: int, path: Path) -> None:
        colours = np.random.default_rng(index).integers(0, 255, (50 + index, 64, 3), np.uint8)
        Image.fromarray(colours).convert(mode).save(path)

    repaint(tiny.folder / "data", paint)
    ran = tiny.run("+recipe=mine", "goal=calibrate")
    assert ran.code == 0, ran.err


# ---- recipe and command line: refused before anything is built


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("source: file", "source: fiel", ["mine.yaml:2", "there is no source 'fiel'", "did you mean 'file'?"]),
        ("/source: file", "/sauce: file", ["mine.yaml:2", "no group 'sauce'", "did you mean 'source'?"]),
        ("dataset: {path", "dataset: {pth", ["mine.yaml:7", "no key 'pth' in 'dataset'", "did you mean 'path'?"]),
        ("samples: 2}\nev", "samples: two}\nev", ["mine.yaml:7", "'two' is not a whole number"]),
        ("samples: 2}\nev", "samples: -2}\nev", ["mine.yaml:7", "is -2", "at least 1"]),
        ("{max: 255}", "{max: .nan}", ["mine.yaml:11", "not a finite number"]),
        ("agreement_lsb", "agrement_lsb", ["mine.yaml:11", "no gate 'agrement_lsb'", "did you mean 'agreement_lsb'?"]),
        ("gates:", "calibration: {estimator: msee}\ngates:", ["mine.yaml:11", "did you mean 'mse'?"]),
        ("gates:", "quantization: {scheme: int9}\ngates:", ["mine.yaml:11", "did you mean 'int8'?"]),
        ("gates:", "target: {vtcm_mb: 64}\ngates:", ["mine.yaml:11", "SM8650", "has 8 MB of VTCM", "valid choices: 1"]),
        ("gates:", "goal: quantise\ngates:", ["mine.yaml:11", "no step 'quantise'", "did you mean 'quantize'?"]),
        ("gates:", "task: {threshold: 2}\ngates:", ["mine.yaml:11", "threshold must be between 0 and 1"]),
        ("gates:", "gates: [\n", ["mine.yaml", "not YAML"]),
        ("models/mine.onnx", "'${oc.env:HOME}'", ["mine.yaml:6", "resolver"]),
    ],
)
def test_a_wrong_recipe_is_refused_with_file_and_line(tiny: Project, old: str, new: str, words: list[str]) -> None:
    edit(tiny, old, new)
    ran = tiny.run("+recipe=mine")
    assert ran.code == 2, ran.err
    for word in ("recipes/", *words):
        assert word in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["+recipe=mien"], ["no recipe 'mien'", "valid choices: ", " mine, ", "did you mean 'mine'?"]),
        (["+recipe=mine", "quantisation=int8"], ["did you mean 'quantization'?"]),
        (["+recipe=mine", "dataset.sample=3"], ["no key 'sample' in 'dataset'", "did you mean 'samples'?"]),
        (["+recipe=mine", "target=sm865O"], ["valid choices: ", " qcs6490, ", "did you mean 'sm8650'?"]),
        (["+recipe=mine", "target.soc_model=5"], ["command line (target.soc_model)", "unknown SoC 5", "sm8650 (57)"]),
        (["+recipe=mine", "target.soc=sm9999"], ["command line (target.soc)", "unknown SoC 'sm9999'", "sm8650 (57)"]),
        (["+recipe=mine", "target.soc=sm8550"], ["soc_model 57 is SM8650", "valid choices: 43"]),
        (["+recipe=mine", "target.arch=v73"], ["arch v73 is not that of SM8650", "valid choices: v75"]),
        (["+recipe=mine", "target=sm8450", "quantization=a16w16"], ["'a16w16' needs HTP v73", "'a16w8_per_channel'"]),
        (["+recipe=mine", "dataset.seed=-1"], ["'dataset.seed' is -1", "at least 0"]),
        (["+recipe=mine", "dataset.samples=1.5"], ["'1.5' is not a whole number"]),
        (["+recipe=mine", "model.inputs.x.scale=inf"], ["is inf, not a finite number"]),
        (["+recipe=mine", "target.rates.conv_tmac_s=fast"], ["'fast' is not a number"]),
        (["+recipe=mine", "emulate.samples=3"], ["emulate.samples (3)", "raise evaluation.samples"]),
        (["+recipe=mine", "source.sha256=abc"], ["'abc' is not a SHA-256"]),
        (["+recipe=mine", "--jsn"], ["no option '--jsn'", "did you mean '--json'?"]),
        (["mine"], ["write +recipe=mine"]),
        ([], ["no recipe is chosen", "mine, ocr_detect"]),
    ],
)
def test_a_wrong_command_line_is_refused_with_the_choices(
    tiny: Project, arguments: list[str], words: list[str]
) -> None:
    ran = tiny.run(*arguments)
    assert ran.code == 2, ran.err
    for word in words:
        assert word in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert not (tiny.folder / "artifacts").exists()
