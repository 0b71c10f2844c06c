"""Text detection: a DB heat map to rotated boxes, and the ICDAR measure of them.

An answer is {"quads": [[[x, y] * 4]…], "scores": […]}, the truth {"quads": […], "texts": […]} with quads of any
rotation in the image's pixels; a truth whose text is `###` is not judged (ICDAR's 'do not care').
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import StepError
from anfbuild.tasks.components import components
from anfbuild.tasks.geometry import Point, Rectangle, area, convex_hull, intersection_area, smallest_rectangle
from anfbuild.tasks.images import ImageTask
from anfbuild.tasks.options import TextDetectionOptions
from anfbuild.tasks.outputs import only_output
from anfbuild.tasks.task import NothingToScore, Prediction, Score

MAX_CANDIDATES = 1000
"""The largest components are looked at, no more: PaddleOCR's bound, which keeps a noisy map from costing seconds."""

DO_NOT_CARE = "###"

_DIGITS = 5
"""Of a score, after the point: CPUs agree on a mean of probabilities to about seven."""

_WRITE_TRUTH = (
    'Give it in truth.json: {"FILE": {"quads": [[[x, y], [x, y], [x, y], [x, y]]], "texts": ["TEXT"]}}; '
    "texts may be left out."
)


class TextDetection(ImageTask):
    """The task `text_detection`."""

    metric = "hmean"
    higher_is_better = True

    def __init__(self, options: TextDetectionOptions) -> None:
        self.options = options

    def decode(self, outputs: Mapping[str, NDArray[Any]], size: tuple[int, int]) -> Prediction:
        """The boxes in the one output, a heat map (1, 1, height, width) or without the ones, of probabilities.

        `size` is (height, width) of the original image, whose pixels the boxes are in. Raises StepError for
        several outputs, another shape and values that are no numbers.
        """
        heat = _heat_map(outputs)
        size_y, size_x = size[0] / heat.shape[0], size[1] / heat.shape[1]
        found = []
        for points in _candidates(_dilated(heat > self.options.threshold), self.options.min_size):
            rectangle = smallest_rectangle(points)
            if rectangle.short_side < self.options.min_size:
                continue
            score = _mean_inside(heat, rectangle)
            grown = rectangle.grown(_unclip_distance(rectangle, self.options.unclip_ratio))
            if score >= self.options.box_threshold and grown.short_side >= self.options.min_size + 2:
                found.append(([[x * size_x, y * size_y] for x, y in grown.corners()], score))
        return {"quads": [quad for quad, _ in found], "scores": [score for _, score in found]}

    def check_truth(self, truth: Prediction, name: str) -> None:
        """StepError naming the sample, and the quad, where quads are missing, malformed or without area; texts too."""
        _truth(truth, name)

    def score(self, predictions: Sequence[Prediction], truths: Sequence[Prediction]) -> Score:
        """Harmonic mean of precision and recall over all samples, boxes matched one to one.

        `Score.counts` has the columns (found, predicted, truth). Raises StepError where a sample has no truth,
        NothingToScore where no sample has any text.
        """
        counts = np.array(
            [
                _count(prediction["quads"], *_truth(truth, str(index)), self.options.iou)
                for index, (prediction, truth) in enumerate(zip(predictions, truths, strict=True))
            ],
            np.int64,
        ).reshape(-1, 3)
        found, predicted, wanted = (int(total) for total in counts.sum(axis=0))
        if not wanted:
            raise NothingToScore(
                "no sample has any text in the ground truth or in the float model's answers that stand for it",
                remedy="Add samples with text; without ground truth, check scale, mean and std of model.inputs.",
            )
        parts = {"precision": found / predicted if predicted else 0.0, "recall": found / wanted}
        return Score(float(self.value(counts.sum(axis=0))), parts, counts)

    def value(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Hmean = 2PR / (P + R) = 2 found / (predicted + truth); 1 where there is nothing to find and nothing found."""
        boxes = totals[..., 1] + totals[..., 2]
        return np.where(boxes > 0, 2 * totals[..., 0] / np.maximum(boxes, 1), 1.0)


def _heat_map(outputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    name, values = only_output(outputs, "text detection", "heat map")
    if values.ndim < 2 or any(size != 1 for size in values.shape[:-2]) or 0 in values.shape:
        raise StepError(f"output {name!r} of shape {list(values.shape)} is not a heat map (1, 1, height, width)")
    heat: NDArray[np.float32] = values.reshape(values.shape[-2:]).astype(np.float32)
    return heat


def _dilated(bitmap: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Each set pixel also sets its right, lower and lower right neighbour, one row and one column beyond the map.

    So the pixel indices of a component span the edges, not the centres, of what was set: corners in continuous
    coordinates, in which pixel i covers [i, i + 1].
    """
    height, width = bitmap.shape
    result = np.zeros((height + 1, width + 1), np.bool_)
    for y in (0, 1):
        for x in (0, 1):
            result[y : y + height, x : x + width] |= bitmap
    return result


def _candidates(bitmap: NDArray[np.bool_], min_size: float) -> list[NDArray[np.int64]]:
    """The largest components by the diagonal of their upright box, without those that no rectangle can save."""
    found = components(bitmap)
    spans = np.array([np.ptp(points, axis=0) for points in found]).reshape(-1, 2)
    squared = (spans * spans).sum(axis=1)
    largest = np.argsort(-squared, kind="stable")[:MAX_CANDIDATES]
    return [found[i] for i in sorted(largest) if squared[i] >= min_size * min_size]


def _unclip_distance(rectangle: Rectangle, ratio: float) -> float:
    """area * ratio / perimeter (Liao et al., 2020, eq. 10)."""
    a, b = rectangle.half
    return a * b * ratio / (a + b) if a + b else 0.0


def _mean_inside(heat: NDArray[np.float32], rectangle: Rectangle) -> float:
    """Mean of the pixels whose centres lie in the rectangle, 0 where there is none."""
    corners = np.array(rectangle.corners())
    low = np.maximum(np.floor(corners.min(axis=0)).astype(int), 0)
    high = np.minimum(np.ceil(corners.max(axis=0)).astype(int), heat.shape[::-1])
    x = np.arange(low[0], high[0]) + 0.5 - rectangle.centre[0]
    y = (np.arange(low[1], high[1]) + 0.5 - rectangle.centre[1])[:, None]
    (ux, uy), (a, b) = rectangle.axis, rectangle.half
    inside = (np.abs(x * ux + y * uy) <= a) & (np.abs(y * ux - x * uy) <= b)
    values = heat[low[1] : high[1], low[0] : high[0]][inside]
    return round(float(values.mean(dtype=np.float64)), _DIGITS) if values.size else 0.0


def _truth(truth: Prediction, name: str) -> tuple[list[list[Point]], list[list[Point]]]:
    """The hulls of the quads to be found, and of those that are not judged."""
    quads = truth.get("quads")
    if quads is None:
        raise StepError(f"sample {name} has no ground truth 'quads'", remedy=_WRITE_TRUTH)
    if not isinstance(quads, list):
        raise StepError(f"the ground truth 'quads' of sample {name} are not a list", remedy=_WRITE_TRUTH)
    texts = truth.get("texts")
    if texts is None:
        texts = [""] * len(quads)
    if not isinstance(texts, list) or len(texts) != len(quads):
        raise StepError(
            f"the ground truth 'texts' of sample {name} are not a list of one text a quad ({len(quads)} quads)",
            remedy=_WRITE_TRUTH,
        )
    hulls = [_hull(quad, f"quad {index} in the ground truth of sample {name}") for index, quad in enumerate(quads)]
    judged = [hull for hull, text in zip(hulls, texts, strict=True) if text != DO_NOT_CARE]
    return judged, [hull for hull, text in zip(hulls, texts, strict=True) if text == DO_NOT_CARE]


def _hull(quad: object, what: str) -> list[Point]:
    """The hull of four points of two finite numbers, with an area; StepError otherwise."""
    if not isinstance(quad, list) or len(quad) != 4 or not all(_is_point(point) for point in quad):
        raise StepError(f"{what} is not a list of 4 points of 2 finite numbers", remedy=_WRITE_TRUTH)
    hull = convex_hull(quad)
    if not 0 < area(hull) < math.inf:
        raise StepError(f"{what} has no area, or one beyond all numbers", remedy=_WRITE_TRUTH)
    return hull


def _is_point(point: object) -> bool:
    return isinstance(point, list | tuple) and len(point) == 2 and all(_is_finite(number) for number in point)


def _is_finite(number: object) -> bool:
    """Whether it is a number that a float can hold; a truth value is none."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    return -sys.float_info.max <= number <= sys.float_info.max


def _count(
    quads: Sequence[Sequence[Sequence[float]]], judged: list[list[Point]], ignored: list[list[Point]], least: float
) -> tuple[int, int, int]:
    """(found, predicted, truth) of one sample: the pairs of the greatest overlap first, each box in one pair."""
    hulls = [convex_hull(quad) for quad in quads]
    hulls = [p for p in hulls if not any(intersection_area(p, t) > 0.5 * area(p) for t in ignored)]
    pairs = []
    for i, prediction in enumerate(hulls):
        for j, truth in enumerate(judged):
            shared = intersection_area(prediction, truth)
            overlap = shared / (area(prediction) + area(truth) - shared) if shared else 0.0
            if overlap and overlap >= least:
                pairs.append((-overlap, i, j))
    used_predictions: set[int] = set()
    used_truths: set[int] = set()
    for _, i, j in sorted(pairs):
        if i not in used_predictions and j not in used_truths:
            used_predictions.add(i)
            used_truths.add(j)
    return len(used_truths), len(hulls), len(judged)
