from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anfbuild import tasks
from anfbuild.errors import StepError
from anfbuild.tasks.geometry import iou

TASK = tasks.get("text_detection", {})


def heat(*rectangles: tuple[int, int, int, int, float], size: tuple[int, int] = (64, 96)) -> NDArray[np.float32]:
    """A map with a probability in each (left, top, right, bottom, probability), right and bottom past the last."""
    values = np.full((1, 1, *size), 0.01, np.float32)
    for left, top, right, bottom, probability in rectangles:
        values[0, 0, top:bottom, left:right] = probability
    return values


def decode(values: NDArray[np.float32], size: tuple[int, int] = (64, 96)) -> dict[str, Any]:
    return TASK.decode({"map": values}, size)


def box(left: float, top: float, right: float, bottom: float) -> list[list[float]]:
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def test_a_box_is_grown_by_area_times_ratio_over_perimeter() -> None:
    found = decode(heat((20, 10, 60, 20, 0.9)))
    distance = 40 * 10 * 1.6 / (2 * (40 + 10))
    np.testing.assert_allclose(
        found["quads"], [box(20 - distance, 10 - distance, 60 + distance, 20 + distance)], atol=1e-9
    )
    assert found["scores"] == pytest.approx([0.9])


def test_boxes_are_in_pixels_of_the_original_image() -> None:
    values = heat((20, 10, 60, 20, 0.9))
    one, scaled = decode(values)["quads"][0], decode(values, (128, 288))["quads"][0]
    np.testing.assert_allclose(scaled, np.array(one) * [3, 2])


def test_a_turned_box_is_found() -> None:
    y, x = np.mgrid[0:256, 0:384] + 0.5
    u, v = (x - 192) * 0.8 + (y - 128) * 0.6, (y - 128) * 0.8 - (x - 192) * 0.6
    inside = (np.abs(u) <= 100) & (np.abs(v) <= 24)
    (quad,) = decode(np.where(inside, 0.9, 0.0).astype(np.float32), (256, 384))["quads"]
    grow = 200 * 48 * 1.6 / (2 * (200 + 48))
    a, b = 100 + grow, 24 + grow
    truth = [(192 + s * a * 0.8 - t * b * 0.6, 128 + s * a * 0.6 + t * b * 0.8) for s in (-1, 1) for t in (-1, 1)]
    assert iou(quad, truth) > 0.95


def test_neighbours_stay_apart_and_come_in_reading_order() -> None:
    found = decode(heat((50, 4, 90, 12, 0.8), (4, 5, 44, 13, 0.9), (10, 40, 50, 50, 0.7)))
    assert found["scores"] == pytest.approx([0.8, 0.9, 0.7])


def test_faint_and_small_boxes_are_dropped() -> None:
    assert decode(heat((4, 4, 44, 14, 0.45), (50, 4, 52, 34, 0.9), (60, 4, 62, 6, 0.9)))["quads"] == []
    assert decode(heat())["quads"] == []
    strict = tasks.get("text_detection", {"box_threshold": 0.4})
    assert len(strict.decode({"map": heat((4, 4, 44, 14, 0.45))}, (64, 96))["quads"]) == 1


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ({"a": heat(), "b": heat()}, "2 outputs"),
        ({}, "0 outputs"),
        ({"a": np.zeros((1, 2, 8, 8), np.float32)}, "is not a heat map"),
        ({"a": np.zeros(8, np.float32)}, "is not a heat map"),
        ({"a": np.full((1, 1, 8, 8), np.nan, np.float32)}, "not finite"),
    ],
)
def test_refuses_what_is_no_heat_map(outputs: dict[str, Any], message: str) -> None:
    with pytest.raises(StepError, match=message):
        TASK.decode(outputs, (8, 8))


def test_hmean_is_of_summed_counts() -> None:
    a, b, c = box(0, 0, 10, 10), box(20, 0, 30, 10), box(40, 0, 50, 10)
    score = TASK.score(
        [{"quads": [a, b]}, {"quads": []}, {"quads": [c]}], [{"quads": [a]}, {"quads": [a, c]}, {"quads": [c]}]
    )
    assert score.counts.tolist() == [[1, 2, 1], [0, 0, 2], [1, 1, 1]]
    assert score.parts == pytest.approx({"precision": 2 / 3, "recall": 2 / 4})
    assert score.value == pytest.approx(2 * 2 / (3 + 4))
    assert TASK.value(score.counts).tolist() == pytest.approx([2 / 3, 0, 1])


def test_each_box_is_matched_once_from_half_an_overlap_on() -> None:
    truth = {"quads": [box(0, 0, 10, 10)]}
    assert TASK.score([{"quads": [box(0, 0, 10, 5)]}], [truth]).counts.tolist() == [[1, 1, 1]]
    assert TASK.score([{"quads": [box(0, 0, 10, 4.9)]}], [truth]).counts.tolist() == [[0, 1, 1]]
    twice = {"quads": [box(0, 0, 10, 9), box(0, 0, 10, 10)]}
    assert TASK.score([twice], [truth]).counts.tolist() == [[1, 2, 1]]


def test_the_greatest_overlap_is_matched_first() -> None:
    # Taken from left to right, the first prediction would take the truth that only the second one fits.
    predictions = {"quads": [box(2, 0, 12, 10), box(0, 0, 10, 10)]}
    truths = {"quads": [box(0, 0, 10, 10), box(3, 0, 13, 10)]}
    assert TASK.score([predictions], [truths]).counts.tolist() == [[2, 2, 2]]


def test_what_is_not_to_be_judged_counts_neither_way() -> None:
    truth = {"quads": [box(0, 0, 10, 10), box(20, 0, 40, 10)], "texts": ["a", "###"]}
    assert TASK.score([{"quads": [box(0, 0, 10, 10), box(22, 0, 30, 8)]}], [truth]).counts.tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        ({}, "sample 0 has no ground truth"),
        ({"quads": []}, "any text in the ground truth"),
        ({"quads": [box(0, 0, 10, 0)]}, "no area"),
        ({"quads": [box(0, 0, 1e200, 1e200)]}, "no area"),
        ({"quads": [box(0, 0, 1, 1)], "texts": []}, "not a list of one text a quad"),
        ({"quads": [box(0, 0, 1, 1)], "texts": ""}, "not a list of one text a quad"),
        ({"quads": [box(0, 0, 1, 1)], "texts": None}, None),
        ({"quads": [box(0, 0, 1, 1)], "texts": ["a", "b"]}, "not a list of one text a quad"),
        ({"quads": "word"}, "are not a list"),
        ({"quads": 3}, "are not a list"),
        ({"quads": [box(0, 0, 1, 1)], "texts": 3}, "not a list of one text a quad"),
        ({"quads": [box(0, 0, 1, 1), [1, 2, 3]]}, "quad 1 in the ground truth of sample 0 is not a list of 4 points"),
        ({"quads": [box(0, 0, 1, 1)[:3]]}, "4 points"),
        ({"quads": [[*box(0, 0, 1, 1), [2, 2]]]}, "4 points"),
        ({"quads": [[[0, 0], [1, 0], [1, 1], [0, 1, 2]]]}, "2 finite numbers"),
        ({"quads": [[[0, 0], [1, 0], [1, 1], [0, math.nan]]]}, "2 finite numbers"),
        ({"quads": [[[0, 0], [1, 0], [1, 1], [0, math.inf]]]}, "2 finite numbers"),
        ({"quads": [[[0, 0], [1, 0], [1, 1], [0, 10**400]]]}, "2 finite numbers"),
        ({"quads": [[[0, 0], [1, 0], [1, 1], [0, "1"]]]}, "2 finite numbers"),
        ({"quads": [[[0, 0], [1, 0], [1, 1], [0, True]]]}, "2 finite numbers"),
    ],
)
def test_refuses_a_truth_that_cannot_judge(truth: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert TASK.score([{"quads": []}], [truth]).value == 0
    else:
        with pytest.raises(StepError, match=message):
            TASK.score([{"quads": []}], [truth])


def test_a_bad_truth_is_told_by_the_name_of_its_sample() -> None:
    TASK.check_truth({"quads": []}, "good.png")
    with pytest.raises(StepError, match=r"sample bad\.png has no ground truth"):
        TASK.check_truth({}, "bad.png")
