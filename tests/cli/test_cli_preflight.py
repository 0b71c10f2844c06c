"""What is refused before anything is built, each with the key at fault, and where errors say that key was given."""

from __future__ import annotations

from pathlib import Path

import pytest

from anfbuild.cli.located import located
from anfbuild.cli.preflight import check
from anfbuild.errors import RecipeError, StepError
from anfbuild.recipe import Recipe, compose


def recipe(project: Path, *overrides: str) -> Recipe:
    return compose(["+recipe=ocr_detect", *overrides], project)


def test_the_shipped_recipe_is_good(tmp_path: Path) -> None:
    assert [part["part"] for part in check(recipe(tmp_path).config)] == ["onnxruntime", "onnxruntime-qnn", "qnn"]


@pytest.mark.parametrize("name", ["ocr_recognize", "text_retrieval"])
def test_the_other_shipped_recipes_are_good(tmp_path: Path, name: str) -> None:
    check(compose([f"+recipe={name}"], tmp_path).config)


def test_a_task_on_texts_refuses_images(tmp_path: Path) -> None:
    wrong = compose(["+recipe=text_retrieval", "dataset=synthetic_lines"], tmp_path)
    with pytest.raises(RecipeError, match=r"wants texts, but .* are images") as caught:
        check(wrong.config)
    assert list(caught.value.choices or ()) == ["synthetic_sentences"]


@pytest.mark.parametrize(
    ("override", "where", "message"),
    [
        ("target.soc=sm9999", "target.soc", "unknown SoC"),
        ("target.soc=sm8550", "target.soc_model", "is SM8650"),
        ("target.soc_model=5", "target.soc_model", "unknown SoC 5"),
        ("target.arch=v73", "target.arch", "is not that of SM8650"),
        ("target.vtcm_mb=64", "target.vtcm_mb", "has 8 MB"),
        ("quantization.scheme=int9", "quantization.scheme", "did you mean 'int8'"),
        ("calibration.estimator=msee", "calibration.estimator", "did you mean 'mse'"),
        ("task.iou=2", "task.iou", "between 0 and 1"),
        ("model.inputs.x.shape=[2,3,960,960]", "model.inputs.x.shape", "batch of 1"),
        ("model.inputs.x.dtype=uint8", "model.inputs.x.dtype", "as they are"),
        ("source.kind=fiel", "source.kind", "did you mean 'file'"),
        ("dataset.size=64", "dataset.size", "128 pixels"),
        ("dataset.kind=synthetic_sentences", "dataset.kind", r"wants images, but .* are texts"),
        ("source.vocabulary.kind=npm", "source.vocabulary.distribution", "needs 'distribution'"),
        (
            "source.vocabulary={kind: npm, distribution: unpinned, file: a}",
            "source.vocabulary.distribution",
            "is not a pinned npm package",
        ),
        ("emulate.samples=17", "emulate.samples", "raise evaluation.samples"),
        ("+gates.speed={max: 1}", "gates.speed", "no gate 'speed'"),
    ],
)
def test_what_cannot_be_built_is_refused_by_key(tmp_path: Path, override: str, where: str, message: str) -> None:
    wrong = recipe(tmp_path, override)
    with pytest.raises(RecipeError, match=message) as caught:
        check(wrong.config)
    assert caught.value.where == where
    assert located(caught.value, wrong).where in (f"command line ({where})", f"{wrong.place(where)} ({where})")


def test_what_a_component_says_is_refused_by_its_own_key(tmp_path: Path) -> None:
    wrong = compose(["+recipe=hand_gesture", "components.recrop.calibration.estimator=msee"], tmp_path)
    with pytest.raises(RecipeError, match="did you mean 'mse'") as caught:
        check(wrong.config)
    assert caught.value.where == "components.recrop.calibration.estimator"
    told = located(caught.value, wrong)
    assert told.where == "command line (components.recrop.calibration.estimator)"
    broken = located(StepError("it broke", where="fetch/model/hand_recrop.tflite, node 3"), wrong, "recrop")
    assert broken.what == "component 'recrop': it broke"
    assert "hand_recrop.tflite of mediapipe==0.10.14 (" in (broken.where or "")
    assert (broken.where or "").endswith("conf/source/hand_recrop.yaml:7), node 3")


def test_places_are_told_for_keys_and_for_the_source_alone(tmp_path: Path) -> None:
    made = recipe(tmp_path, "dataset.samples=3")

    def where(text: str | None) -> str | None:
        error = located(StepError("it broke", where=text, choices=["a"], remedy="Mend it."), made)
        assert (type(error), error.what, error.choices, error.remedy) == (StepError, "it broke", ["a"], "Mend it.")
        return error.where

    assert where(None) is None
    assert where("dataset.samples") == "command line (dataset.samples)"
    for other in ("node Conv_3", "model.onnx", "results.json", "data/0.png", "command line"):
        assert where(other) == other
    source = where("fetch/model/det.onnx, node Conv_3")
    assert source is not None
    assert "ch_PP-OCRv4_det_infer.onnx of rapidocr-onnxruntime==1.4.4 (" in source
    assert source.endswith("conf/source/ppocr_det.yaml:9), node Conv_3")
