"""Segmentation: maps become classes in the image's pixels, and classes are compared as VOC does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from anfbuild import tasks
from anfbuild.errors import RecipeError, StepError
from anfbuild.tasks.segmentation import runs
from anfbuild.tasks.task import NothingToScore, Prediction

TASK = tasks.get("segmentation", {})
LABELS = arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(0, 2))


def decode(maps: Any, size: tuple[int, int] | None = None, **options: Any) -> NDArray[np.int64]:
    """Class of each pixel of (maps, height, width), told in the layout NCHW and NHWC."""
    values = np.array(maps, np.float32)[None]
    size = size or values.shape[2:]
    nchw = tasks.get("segmentation", options).decode({"y": values}, size)
    nhwc = tasks.get("segmentation", {**options, "layout": "NHWC"}).decode({"y": values.transpose(0, 2, 3, 1)}, size)
    assert nchw == nhwc
    assert nchw["size"] == list(size)
    return np.repeat(nchw["runs"][::2], nchw["runs"][1::2]).reshape(size)


def answer(labels: Any, classes: int = 3) -> Prediction:
    values = np.array(labels, np.uint8)
    return {"size": list(values.shape), "classes": classes, "runs": runs(values)}


def test_one_map_of_probabilities_or_of_logits() -> None:
    assert decode([[[0.2, 0.5, 0.51, 1]]]).tolist() == [[0, 0, 1, 1]]
    assert decode([[[0.2, 0.5, 0.51, 1]]], threshold=0.1).tolist() == [[1, 1, 1, 1]]
    assert decode([[[-900, -0.1, 0.1, 900]]], activation="sigmoid").tolist() == [[0, 0, 1, 1]]
    # sigmoid(1) is 0.731
    assert decode([[[1, 1.1]]], activation="sigmoid", threshold=0.74).tolist() == [[0, 1]]


def test_several_maps() -> None:
    maps = [[[0.9, 0.6, 0.4]], [[0.1, 0.7, 0.3]]]
    assert decode(maps).tolist() == [[1, 2, 0]]
    assert decode(maps, activation="argmax").tolist() == [[0, 1, 0]]
    # softmax of (0, 2) is (0.12, 0.88), of (0, 0.5) (0.38, 0.62)
    scores = [[[0, 0, 9]], [[2, 0.5, 0]]]
    assert decode(scores, activation="softmax").tolist() == [[1, 1, 0]]
    assert decode(scores, activation="softmax", threshold=0.7).tolist() == [[1, 0, 0]]
    assert decode([[[-5]], [[-4]]], activation="argmax").tolist() == [[1]]


def test_maps_are_stretched_before_a_class_is_chosen() -> None:
    # Half-pixel centres: 0 and 1 become 0, 0.25, 0.75, 1.
    assert decode([[[0, 1]]], (1, 4), threshold=0.2).tolist() == [[0, 1, 1, 1]]
    assert decode([[[0, 1]]], (2, 4), threshold=0.3).tolist() == [[0, 0, 1, 1]] * 2


@given(LABELS)
def test_runs_hold_every_pixel(labels: NDArray[np.uint8]) -> None:
    flat = runs(labels)
    np.testing.assert_array_equal(np.repeat(flat[::2], flat[1::2]), labels.ravel())
    assert all(a != b for a, b in zip(flat[::2], flat[2::2], strict=False))


def brute(a: NDArray[np.uint8], b: NDArray[np.uint8], classes: list[int]) -> float | None:
    shares = [((a == c) & (b == c)).sum() / ((a == c) | (b == c)).sum() for c in classes if ((a == c) | (b == c)).any()]
    return float(np.mean(shares)) if shares else None


@given(LABELS, st.data(), st.booleans())
def test_the_score_is_the_mean_of_the_classes_and_right_when_equal(
    truth: NDArray[np.uint8], data: st.DataObject, background: bool
) -> None:
    task = tasks.get("segmentation", {"background": background})
    classes = [0, 1, 2] if background else [1, 2]
    found = data.draw(arrays(np.uint8, truth.shape, elements=st.integers(0, 2)))
    if not np.isin(truth, classes).any():
        with pytest.raises(NothingToScore):
            task.score([answer(found)], [answer(truth)])
        return
    score = task.score([answer(found)], [answer(truth)])
    assert score.value == pytest.approx(brute(found, truth, classes))
    assert score.counts.shape == (1, 2 * len(classes))
    assert task.score([answer(truth)], [answer(truth)]).value == 1


def test_pixels_are_summed_over_samples_first() -> None:
    truths = [answer([[1, 1, 1, 0]]), answer([[1, 0, 0, 0]])]
    score = TASK.score([answer([[1, 1, 1, 0]]), answer([[0, 0, 0, 2]])], truths)
    assert score.counts.tolist() == [[3, 3, 0, 0], [0, 1, 0, 1]]
    assert score.parts == {"class_1": 3 / 4, "class_2": 0.0}
    assert score.value == 3 / 8


def test_void_is_not_judged() -> None:
    score = TASK.score([answer([[1, 1, 2, 2]])], [{"size": [1, 4], "runs": [1, 2, 255, 2]}])
    assert score.counts.tolist() == [[2, 2, 0, 0]]


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ({}, "sample a.png has no ground truth of 'size' and 'runs'"),
        ({"size": [2, 2], "runs": "word"}, "whole numbers"),
        ({"size": [2, 2], "runs": [1, True]}, "whole numbers"),
        ({"size": [2], "runs": [1, 4]}, "whole numbers"),
        ({"size": [2, 2], "runs": [1, 4, 0]}, "whole numbers"),
        ({"size": [2, 2], "runs": [1, 3]}, "3 pixels of classes up to 1, the image of 2 × 2 has 4"),
        ({"size": [2, 2], "runs": [256, 4]}, "classes up to 256"),
        ({"size": [10**9, 10**9], "runs": [0, 10**18]}, "no photo's"),
    ],
)
def test_refuses_a_truth_that_cannot_judge(truth: Prediction, message: str) -> None:
    with pytest.raises(StepError, match=message):
        TASK.check_truth(truth, "a.png")


def test_refuses_a_truth_of_another_image_or_model() -> None:
    with pytest.raises(StepError, match="sample 0 is of 1 × 2 pixels, the image has 2 × 1"):
        TASK.score([answer([[1], [1]])], [answer([[1, 1]])])
    with pytest.raises(StepError, match="has class 7, the model has 0 to 2"):
        TASK.score([answer([[1]])], [answer([[7]])])


@pytest.mark.parametrize(
    ("outputs", "options", "message"),
    [
        ({}, {}, "has 0"),
        ({"a": np.zeros((1, 4, 4))}, {}, "not maps of one image"),
        ({"a": np.zeros((2, 1, 4, 4))}, {}, "not maps of one image"),
        ({"a": np.full((1, 1, 4, 4), np.nan)}, {}, "not finite"),
        ({"a": np.zeros((1, 256, 4, 1))}, {}, "256 maps in NCHW"),
        ({"a": np.zeros((1, 1, 4, 4))}, {"activation": "argmax"}, "argmax chooses between classes"),
    ],
)
def test_refuses_what_are_no_maps(outputs: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(StepError, match=message):
        tasks.get("segmentation", options).decode(outputs, (4, 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "relu"}, "activation cannot be 'relu'"),
        ({"background": 1}, "background cannot be 1"),
        ({"layout": None}, "layout cannot be None"),
    ],
)
def test_refuses_other_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        tasks.check("segmentation", options)
