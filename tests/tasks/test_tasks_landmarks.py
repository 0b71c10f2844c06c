"""Landmarks: a vector becomes points in the image's pixels, judged by their distance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anfbuild import tasks
from anfbuild.errors import RecipeError, StepError
from anfbuild.tasks.task import NothingToScore, Prediction

TASK = tasks.get("landmarks", {})
NUMBER = st.floats(-1000, 1000, allow_nan=False, width=32)
POINTS = st.lists(st.tuples(NUMBER, NUMBER), min_size=2, max_size=8, unique=True)


def answer(*points: Any, size: tuple[int, int] = (100, 200)) -> Prediction:
    return {"size": list(size), "count": len(points), "points": [list(map(float, point)) for point in points]}


ABSENT = {"size": [100, 200], "count": 2, "points": []}


def test_points_are_in_pixels_of_the_image() -> None:
    found = TASK.decode({"y": np.array([[0.5, 0.25, 1, 1]], np.float32)}, (100, 200))
    assert found == {
        **{"size": [100, 200], "count": 2, "points": [[100.0, 25.0], [200.0, 100.0]]},
        **{"presence": None, "handedness": None},
    }
    task = tasks.get("landmarks", {"dims": 3, "extent": 224})
    (point,) = task.decode({"y": np.array([[112, 56, -22.4]], np.float32)}, (100, 200))["points"]
    assert point == pytest.approx([100, 25, -20], abs=1e-3)


def test_presence_and_hand_come_from_outputs_of_their_own() -> None:
    task = tasks.get("landmarks", {"points": "p", "presence": "s", "handedness": "h"})
    outputs = {"p": np.zeros((1, 4)), "s": np.array([[0.75]]), "h": np.array([[0.25]])}
    found = task.decode(outputs, (10, 10))
    assert (found["count"], len(found["points"]), found["presence"], found["handedness"]) == (2, 2, 0.75, 0.25)
    absent = task.decode({**outputs, "s": np.array([[0.25]])}, (10, 10))
    assert (absent["count"], absent["points"], absent["presence"]) == (2, [], 0.25)


@given(POINTS, st.floats(0.5, 100), st.tuples(NUMBER, NUMBER))
def test_the_share_does_not_change_with_place_and_size(
    points: list[tuple[float, float]], scale: float, shift: tuple[float, float]
) -> None:
    truth = np.array(points)
    assume(np.ptp(truth, axis=0).max() >= 1)
    longer = np.ptp(truth, axis=0).max()
    found = truth + np.outer(np.arange(len(points)) % 2, [0, longer * 0.2])  # every second one is off by a fifth
    for factor, offset in ((1.0, (0.0, 0.0)), (scale, shift)):
        score = TASK.score([answer(*(found * factor + offset))], [answer(*(truth * factor + offset))])
        assert score.counts.tolist() == [[(len(points) + 1) // 2, len(points)]]
    assert TASK.score([answer(*truth)], [answer(*truth)]).value == 1


def test_the_limit_is_a_share_of_the_longer_side() -> None:
    truth, found = answer((0, 0), (50, 20)), answer((5, 0), (50, 25.1))
    assert TASK.score([found], [truth]).counts.tolist() == [[1, 2]]
    wide = tasks.get("landmarks", {"reference": "image", "fraction": 0.026})  # 5.2 of 200 pixels
    assert wide.score([found], [truth]).counts.tolist() == [[2, 2]]


def test_points_that_are_not_judged_and_hands_that_are_not_there() -> None:
    truth = {"points": [[0, 0], None, [50, 20]]}
    assert TASK.score([answer((0, 0), (9, 9), (0, 0))], [truth]).counts.tolist() == [[1, 2]]
    two = {"points": [[0, 0], [50, 20]]}
    shown, hidden = answer((0, 0), (50, 20)), ABSENT
    score = TASK.score([shown, hidden, shown, hidden], [two, two, {"points": []}, {"points": []}])
    assert score.counts.tolist() == [[2, 2], [0, 2], [0, 2], [0, 0]]
    assert score.value == 2 / 6
    assert TASK.value(score.counts).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ({}, "sample a has no ground truth 'points'"),
        ({"points": 3}, "list of"),
        ({"points": [[1]]}, "list of"),
        ({"points": [[1, True]]}, "list of"),
        ({"points": [[1, float("nan")]]}, "finite"),
        ({"points": [[1, 10**400]]}, "finite"),
    ],
)
def test_refuses_a_truth_that_cannot_judge(truth: Prediction, message: str) -> None:
    with pytest.raises(StepError, match=message):
        TASK.check_truth(truth, "a")


def test_refuses_a_truth_of_another_model_or_without_a_size() -> None:
    with pytest.raises(StepError, match="has 1 points, the model gives 2"):
        TASK.score([answer((0, 0), (1, 1))], [{"points": [[0, 0]]}])
    with pytest.raises(StepError, match="in one place"):
        TASK.score([answer((0, 0), (1, 1))], [{"points": [[5, 5], [5, 5]]}])
    with pytest.raises(NothingToScore, match="no sample has a point"):
        TASK.score([answer((0, 0), (1, 1))], [{"points": []}])


@pytest.mark.parametrize(
    ("outputs", "options", "message"),
    [
        ({"a": np.zeros(4), "b": np.zeros(4)}, {}, "2 outputs to read points from"),
        ({"a": np.zeros(4)}, {"points": "b"}, "no output 'b'"),
        ({"a": np.zeros(5)}, {}, "5 values, which is no multiple of 2"),
        ({"a": np.full(4, np.inf)}, {}, "not finite"),
        ({"a": np.zeros(4), "s": np.zeros(2)}, {"points": "a", "presence": "s"}, "2 values, not one probability"),
    ],
)
def test_refuses_what_are_no_points(outputs: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(StepError, match=message):
        tasks.get("landmarks", options).decode(outputs, (4, 4))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dims": 2.5}, "dims must be a whole number"),
        ({"dims": 1}, "between 2 and 16"),
        ({"points": 3}, "name of an output or null"),
        ({"reference": "torso"}, "reference cannot be 'torso'"),
    ],
)
def test_refuses_other_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        tasks.check("landmarks", options)
