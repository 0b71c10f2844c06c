from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild import tasks
from anfbuild.errors import StepError
from anfbuild.tasks.task import NothingToScore
from anfbuild.tasks.text_recognition import distance

CHARACTERS = ["a", "b", "c"]
SPEC: Any = {"shape": [1, 3, 4, 12], "scale": 1 / 255, "mean": [0.5] * 3, "std": [0.5] * 3, "channels": "BGR"}


def task(vocabulary: list[str] = CHARACTERS) -> tasks.Task:
    return tasks.get("text_recognition", {}, vocabulary)


def steps(*labels: int, classes: int = 5) -> dict[str, np.ndarray]:
    """Probabilities that are greatest for `labels`."""
    return {"p": np.eye(classes, dtype=np.float32)[None, list(labels)] * np.float32(0.5)}


def test_a_line_keeps_its_aspect_and_zeros_follow() -> None:
    image = np.full((8, 12, 3), (255, 0, 0), np.uint8)
    array = task().feeds(image, {"x": SPEC})["x"]
    assert array.shape == (1, 3, 4, 12)
    assert array.dtype == np.float32
    np.testing.assert_allclose(array[0, :, :, :6], np.broadcast_to([[[-1]], [[-1]], [[1]]], (3, 4, 6)))
    assert not array[0, :, :, 6:].any()


@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_a_long_line_is_squeezed(layout: str) -> None:
    shape = [1, 3, 4, 12] if layout == "NCHW" else [1, 4, 12, 3]
    array = task().feeds(np.full((4, 90, 3), 255, np.uint8), {"x": {**SPEC, "shape": shape, "layout": layout}})["x"]
    assert list(array.shape) == shape
    assert (array > 0).all()


def test_merges_repetitions_and_drops_blanks() -> None:
    answer = task().decode(steps(0, 1, 1, 0, 1, 2, 2, 4, 3, 0), (8, 12))
    assert answer == {"text": "aab c", "score": 0.5}
    assert task().decode(steps(0, 0), (8, 12)) == {"text": "", "score": 0.0}


def test_the_space_may_be_missing() -> None:
    assert task().decode(steps(1, 3, classes=4), (8, 12))["text"] == "ac"


@pytest.mark.parametrize(
    ("outputs", "vocabulary", "message"),
    [
        (steps(1), [], "vocabulary has 0 characters"),
        (steps(1, classes=7), CHARACTERS, "7 classes apart"),
        (steps(1) | {"q": np.zeros(1)}, CHARACTERS, "has 2"),
        ({"p": np.zeros((2, 5), np.float32)}, CHARACTERS, "is not"),
        ({"p": np.full((1, 2, 5), np.nan, np.float32)}, CHARACTERS, "not finite"),
    ],
)
def test_refuses_outputs_that_are_no_text(outputs: Any, vocabulary: list[str], message: str) -> None:
    with pytest.raises(StepError, match=message):
        task(vocabulary).decode(outputs, (8, 12))


def test_scores_lines_and_characters() -> None:
    score = task().score([{"text": "abc"}, {"text": "ab"}, {"text": ""}], [{"text": t} for t in ("abc", "abca", "c")])
    assert score.value == pytest.approx(1 / 3)
    assert score.parts == {"cer": 3 / 8}
    assert score.counts.tolist() == [[1, 1, 0, 3], [0, 1, 2, 4], [0, 1, 1, 1]]
    assert task().value(score.counts[:1].sum(axis=0)) == 1


@pytest.mark.parametrize("truth", [{}, {"text": 3}, {"text": ""}, {"quads": []}])
def test_names_the_sample_without_a_text(truth: dict[str, Any]) -> None:
    with pytest.raises(StepError, match="sample IMG has no ground truth 'text'"):
        task().check_truth(truth, "IMG")
    task().check_truth({"text": "a"}, "IMG")


@given(st.text("abc", max_size=6), st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_the_distance_is_one(a: str, b: str, c: str) -> None:
    assert distance(a, a) == 0
    assert distance(a, b) == distance(b, a) <= max(len(a), len(b))
    assert distance(a, b) >= abs(len(a) - len(b))
    assert distance(a, c) <= distance(a, b) + distance(b, c)


def test_a_text_is_no_image() -> None:
    with pytest.raises(StepError, match="wants images"):
        task().feeds("text", {"x": SPEC})


def test_where_nothing_is_read_nothing_is_scored() -> None:
    nothing = [{"text": "", "score": 0.0}] * 2
    with pytest.raises(NothingToScore, match="no sample has any text"):
        task().score(nothing, nothing)
    assert task().score([{"text": "a"}, {"text": ""}], [{"text": "a"}, {"text": ""}]).value == 1
