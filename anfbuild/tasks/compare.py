"""The same samples answered by the float, the quantized and the emulated model, scored and compared.

Where the data has no ground truth, the float model's answers take its place: the metric then says how far quantization
changes the answers, and nothing of how right they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anfbuild.tasks.bootstrap import drop_interval
from anfbuild.tasks.task import NothingToScore, Prediction, Score, Task

_USELESS = (
    "the float model scores 0, so that no loss can be told: check scale, mean, std and channels of model.inputs, "
    "the task's options and the ground truth"
)
_NO_TRUTH = "the data has no ground truth: the float model's own answers are what the others are judged by"
_NO_SHARE = "the float model's value is 0, of which nothing is a share"


def compare(
    task: Task,
    truths: Sequence[Prediction] | None,
    float_answers: Sequence[Prediction],
    quantized_answers: Sequence[Prediction],
    emulated_answers: Sequence[Prediction],
) -> dict[str, Any]:
    """Scores and drops as JSON values. The emulated answers are to the first of the samples, or to none.

    Without `truths` the float model's answers judge: `reference` and the metric's name say so, the float model has no
    score of its own, and drops are from perfect agreement.

    A drop is float minus quantized in the metric's unit, signed so that a loss is positive; `interval95` is of
    `drop_abs`, from a bootstrap over the samples. `reasons` says why a figure is None, by its name.
    """
    judges = float_answers if truths is None else truths
    emulated = len(emulated_answers)
    exact, quantized = task.score(float_answers, judges), task.score(quantized_answers, judges)
    loss, reasons = _loss(task, exact, quantized)
    found: dict[str, Any] = {
        "metric": task.metric,
        "reference": "ground_truth",
        "higher_is_better": task.higher_is_better,
        "samples": {"float": len(judges), "quantized": len(judges), "emulated": emulated},
        "float": exact.value,
        "quantized": quantized.value,
        "emulated": None,
        **loss,
        "reasons": reasons,
    }
    if truths is None:
        found |= {"metric": f"{task.metric} against float", "reference": "float", "float": None}
        reasons["float"] = _NO_TRUTH
    if emulated:
        try:
            found["emulated"] = task.score(emulated_answers, judges[:emulated]).value
        except NothingToScore as nothing:
            reasons["emulated"] = nothing.what
    return found


def _loss(task: Task, exact: Score, quantized: Score) -> tuple[dict[str, Any], dict[str, str]]:
    """`drop_abs`, `drop_rel` and `interval95`, and why those that are None are."""
    loss: dict[str, Any] = dict.fromkeys(("drop_abs", "drop_rel", "interval95"))
    if task.higher_is_better and not exact.value:
        return loss, dict.fromkeys(loss, _USELESS)
    sign = 1 if task.higher_is_better else -1
    edges = drop_interval(exact.counts, quantized.counts, task.value)
    loss["drop_abs"] = sign * (exact.value - quantized.value)
    loss["interval95"] = sorted(sign * edge for edge in edges)
    if not exact.value:
        return loss, {"drop_rel": _NO_SHARE}
    loss["drop_rel"] = loss["drop_abs"] / exact.value
    return loss, {}
