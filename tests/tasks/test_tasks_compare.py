"""The comparison scores the same samples and signs a loss positive."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anfbuild.tasks import get
from anfbuild.tasks.compare import compare
from anfbuild.tasks.task import NothingToScore, Score

SQUARE = [[0, 0], [10, 0], [10, 10], [0, 10]]
FAR = [[x + 50, y] for x, y in SQUARE]


def answer(*quads: list[list[int]]) -> dict[str, Any]:
    return {"quads": list(quads), "scores": [1.0] * len(quads)}


def truth(*quads: list[list[int]]) -> dict[str, Any]:
    return {"quads": list(quads), "texts": ["word"] * len(quads)}


def test_a_lost_box_is_a_positive_drop() -> None:
    truths = [truth(SQUARE, FAR), truth(SQUARE)]
    exact, lossy = [answer(SQUARE, FAR), answer(SQUARE)], [answer(SQUARE), answer(SQUARE)]
    found = compare(get("text_detection", {}), truths, exact, lossy, [])
    assert (found["metric"], found["float"], found["emulated"]) == ("hmean", 1.0, None)
    assert found["quantized"] == pytest.approx(2 * 2 / (2 + 3))
    assert found["drop_abs"] == pytest.approx(0.2)
    assert found["drop_rel"] == pytest.approx(0.2)
    low, high = found["interval95"]
    assert low <= found["drop_abs"] <= high


def test_emulated_answers_are_scored_on_their_own_samples_only() -> None:
    truths = [truth(SQUARE), truth(SQUARE)]
    answers = [answer(SQUARE), answer(FAR)]
    found = compare(get("text_detection", {}), truths, answers, answers, answers[:1])
    assert found["samples"] == {"float": 2, "quantized": 2, "emulated": 1}
    assert (found["emulated"], found["quantized"], found["drop_abs"]) == (1.0, 0.5, 0.0)
    assert found["interval95"] == [0.0, 0.0]


def test_a_float_model_that_finds_nothing_has_nothing_to_lose() -> None:
    found = compare(get("text_detection", {}), [truth(SQUARE)], [answer(FAR)], [answer(FAR)], [])
    assert (found["float"], found["drop_abs"], found["drop_rel"], found["interval95"]) == (0.0, None, None, None)
    assert list(found["reasons"]) == ["drop_abs", "drop_rel", "interval95"]
    assert "check scale, mean" in found["reasons"]["drop_abs"]


def test_without_ground_truth_the_float_answers_judge() -> None:
    exact, lossy = [answer(SQUARE, FAR), answer(SQUARE)], [answer(SQUARE), answer(SQUARE)]
    found = compare(get("text_detection", {}), None, exact, lossy, lossy[:1])
    assert (found["metric"], found["reference"], found["float"]) == ("hmean against float", "float", None)
    assert "no ground truth" in found["reasons"]["float"]
    assert (found["quantized"], found["emulated"]) == (pytest.approx(0.8), pytest.approx(2 / 3))
    assert (found["drop_abs"], found["drop_rel"]) == (pytest.approx(0.2), pytest.approx(0.2))
    equal = compare(get("text_detection", {}), None, exact, exact, [])
    assert (equal["quantized"], equal["drop_abs"], equal["interval95"]) == (1.0, 0.0, [0.0, 0.0])


def test_emulated_samples_that_hold_nothing_leave_the_rest_standing() -> None:
    truths, answers = [truth(), truth(SQUARE)], [answer(), answer(SQUARE)]
    found = compare(get("text_detection", {}), truths, answers, answers, answers[:1])
    assert (found["quantized"], found["emulated"]) == (1.0, None)
    assert "any text" in found["reasons"]["emulated"]
    with pytest.raises(NothingToScore, match="float model's answers"):
        compare(get("text_detection", {}), None, [answer()], [answer(SQUARE)], [])


class Errors:
    """A task whose metric counts errors: fewer are better."""

    metric, higher_is_better = "errors", False

    def score(self, predictions: Any, truths: Any) -> Score:
        counts = np.array([[abs(a["n"] - b["n"])] for a, b in zip(predictions, truths, strict=True)])
        return Score(float(counts.sum()), {}, counts)

    def value(self, totals: Any) -> Any:
        return totals[..., 0].astype(float)


@pytest.mark.parametrize("truths", [None, [{"n": 1}, {"n": 2}]])
def test_no_errors_in_float_are_a_reference_and_not_a_useless_model(truths: Any) -> None:
    task: Any = Errors()
    found = compare(task, truths, [{"n": 1}, {"n": 2}], [{"n": 1}, {"n": 5}], [])
    assert (found["quantized"], found["drop_abs"], found["drop_rel"]) == (3.0, 3.0, None)
    assert "of which nothing is a share" in found["reasons"]["drop_rel"]
