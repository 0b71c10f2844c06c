"""The same samples answered by the float, the quantized and the emulated model, scored and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anfbuild.tasks.bootstrap import drop_interval
from anfbuild.tasks.task import Prediction, Task

_USELESS = (
    "the float model scores 0, so that no loss can be told: check scale, mean, std and channels of model.inputs, "
    "the task's options and the ground truth"
)


def compare(
    task: Task,
    truths: Sequence[Prediction],
    float_answers: Sequence[Prediction],
    quantized_answers: Sequence[Prediction],
    emulated_answers: Sequence[Prediction],
) -> dict[str, Any]:
    """Scores and drops as JSON values. The emulated answers are to the first of the samples, or to none.

    A drop is float minus quantized in the metric's unit, signed so that a loss is positive; `interval95` is of
    `drop_abs`, from a bootstrap over the samples. `reasons` says why a figure is None, by its name.
    """
    sign = 1 if task.higher_is_better else -1
    exact, quantized = task.score(float_answers, truths), task.score(quantized_answers, truths)
    emulated = len(emulated_answers)
    loss: dict[str, Any] = dict.fromkeys(("drop_abs", "drop_rel", "interval95"))
    if exact.value:
        loss["drop_abs"] = sign * (exact.value - quantized.value)
        loss["drop_rel"] = loss["drop_abs"] / exact.value
        edges = drop_interval(exact.counts, quantized.counts, task.value)
        loss["interval95"] = sorted(sign * edge for edge in edges)
    return {
        "metric": task.metric,
        "higher_is_better": task.higher_is_better,
        "samples": {"float": len(truths), "quantized": len(truths), "emulated": emulated},
        "float": exact.value,
        "quantized": quantized.value,
        "emulated": task.score(emulated_answers, truths[:emulated]).value if emulated else None,
        **loss,
        "reasons": {} if exact.value else dict.fromkeys(loss, _USELESS),
    }
