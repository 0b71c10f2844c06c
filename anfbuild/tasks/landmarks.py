"""Landmarks: a vector of points of a hand, a face or a body, and the share of correct points (PCK).

An answer is {"size": [height, width], "count": …, "points": [[x, y, …], …], "presence": …, "handedness": …} in the
image's pixels, what follows x and y scaled as x is. `count` is how many points the model gives, `points` is empty where
it finds nothing to give them of, and the last two are null where it does not tell. The truth is {"points": [[x, y] or
null, …]}: null is a point that is not judged, an empty list says that there is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import StepError
from anfbuild.tasks.images import ImageTask
from anfbuild.tasks.options import LandmarksOptions
from anfbuild.tasks.task import NothingToScore, Prediction, Score

_DIGITS = 4
"""After the point, of pixels and probabilities: CPUs agree on a float32 to about seven digits in all."""
_FARTHEST = 1e9
"""Pixels: a coordinate of the truth beyond is none."""

_WRITE_TRUTH = (
    'Give it in truth.json: {"FILE": {"points": [[x, y], null, ...]}}, as many as the model gives; null is not judged, '
    "an empty list says that there is nothing."
)


class Landmarks(ImageTask):
    """The task `landmarks`."""

    metric = "PCK"
    higher_is_better = True

    def __init__(self, options: LandmarksOptions) -> None:
        self.options = options

    def decode(self, outputs: Mapping[str, NDArray[Any]], size: tuple[int, int]) -> Prediction:
        """The points in an output of any shape whose values are points × `dims`, in pixels of `size`.

        `size` is (height, width). Raises StepError for an output that is not there or not of such a length, and
        for values that are no numbers.
        """
        options = self.options
        values = _values(outputs, options.points, "points")
        dims = options.dims
        if len(values) % dims:
            raise StepError(
                f"the output of points has {len(values)} values, which is no multiple of {dims}",
                where="task.dims",
                remedy="Correct the values of a point or task.points.",
            )
        presence = _probability(outputs, options.presence, "presence")
        found = presence is None or presence >= options.threshold
        height, width = size
        scale = np.array([width, height] + [width] * (dims - 2)) / options.extent
        points = np.round(values.reshape(-1, dims) * scale, _DIGITS).tolist() if found else []
        return {
            "size": [height, width],
            "count": len(values) // dims,
            "points": points,
            "presence": presence,
            "handedness": _probability(outputs, options.handedness, "handedness"),
        }

    def check_truth(self, truth: Prediction, name: str) -> None:
        """StepError naming the sample where its points are missing or malformed."""
        _points(truth, f"sample {name}")

    def score(self, predictions: Sequence[Prediction], truths: Sequence[Prediction]) -> Score:
        """The share of points within `fraction` of the reference size, over all samples.

        Where only the answer or only the truth holds something, all points of that sample are wrong. `Score.counts` has
        the columns (right, judged). Raises StepError where a truth has another number of points, NothingToScore where
        no truth has any.
        """
        counts = np.array(
            [
                self._count(answer, _points(truth, f"sample {index}"), index)
                for index, (answer, truth) in enumerate(zip(predictions, truths, strict=True))
            ],
            np.int64,
        ).reshape(-1, 2)
        if not any(any(point is not None for point in truth["points"]) for truth in truths):
            raise NothingToScore(
                "no sample has a point in the ground truth or in the float model's answers that stand for it",
                remedy="Add samples with something to find; without ground truth, check scale, mean and std of "
                "model.inputs.",
            )
        return Score(float(self.value(counts.sum(axis=0))), {}, counts)

    def value(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """right / judged; 1 where nothing is judged."""
        return np.where(totals[..., 1] > 0, totals[..., 0] / np.maximum(totals[..., 1], 1), 1.0)

    def _count(self, answer: Prediction, truth: list[list[float] | None], index: int) -> tuple[int, int]:
        """(right, judged) of one sample."""
        if truth and len(truth) != answer["count"]:
            raise StepError(
                f"the ground truth of sample {index} has {len(truth)} points, the model gives {answer['count']}",
                remedy=_WRITE_TRUTH,
            )
        judged = [number for number, point in enumerate(truth) if point is not None]
        if not truth or not answer["points"]:
            wrong = answer["count"] if not truth and answer["points"] else len(judged)
            return 0, wrong
        if not judged:
            return 0, 0
        wanted = np.array([point[:2] for point in truth if point is not None], np.float64)
        found = np.array([answer["points"][number][:2] for number in judged], np.float64)
        longer = np.ptp(wanted, axis=0).max() if self.options.reference == "box" else max(answer["size"])
        if not longer:
            raise StepError(
                f"the points that sample {index} is judged by lie in one place: the box around them has no size",
                where="task.reference",
                remedy="Give more points, or judge by the size of the image: task.reference=image.",
            )
        distance = np.hypot(*(found - wanted).T)
        return int((distance <= self.options.fraction * longer).sum()), len(judged)


def _values(outputs: Mapping[str, NDArray[Any]], name: str | None, what: str) -> NDArray[np.float64]:
    """All values of the output `name`, of the only one where it is None."""
    if name is None and len(outputs) == 1:
        (name,) = outputs
    if name is None or name not in outputs:
        asked = f"there is no output {name!r}" if name else f"the model has {len(outputs)} outputs"
        raise StepError(
            f"{asked} to read {what} from",
            where=f"task.{what}",
            choices=outputs,
            remedy="Name the output; model.outputs cuts those that are not listed there.",
        )
    values = outputs[name].astype(np.float64).ravel()
    if not values.size or not np.isfinite(values).all():
        raise StepError(f"output {name!r} is empty or holds values that are not finite")
    return values


def _probability(outputs: Mapping[str, NDArray[Any]], name: str | None, what: str) -> float | None:
    """The one value of the output `name`; None where the recipe names none."""
    if name is None:
        return None
    values = _values(outputs, name, what)
    if values.size != 1:
        raise StepError(f"output {name!r} has {values.size} values, not one probability", where=f"task.{what}")
    return round(float(values[0]), _DIGITS)


def _points(truth: Prediction, whose: str) -> list[list[float] | None]:
    points = truth.get("points")
    if not isinstance(points, list) or not all(point is None or _is_point(point) for point in points):
        raise StepError(
            f"{whose} has no ground truth 'points', a list of [x, y] in finite numbers, or null",
            remedy=_WRITE_TRUTH,
        )
    return points


def _is_point(point: object) -> bool:
    return (
        isinstance(point, list)
        and len(point) >= 2
        and all(type(number) in (int, float) and -_FARTHEST < number < _FARTHEST for number in point[:2])
    )
