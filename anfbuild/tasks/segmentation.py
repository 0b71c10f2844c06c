"""Segmentation: maps of scores to the class of each pixel, and the mean intersection over union.

An answer is {"size": [height, width], "classes": …, "runs": [class, pixels, class, pixels, …]}: the runs of pixels of
one class in reading order, in the image's own pixels; class 0 is the background. The truth has the same form, `classes`
left out; pixels of class 255 are not judged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import StepError
from anfbuild.tasks.images import ImageTask
from anfbuild.tasks.options import SegmentationOptions
from anfbuild.tasks.preprocess import stretch
from anfbuild.tasks.task import NothingToScore, Prediction, Score

VOID = 255
"""A class of the truth that is not judged."""

_LARGEST = 1 << 28
"""Pixels of a truth: more is a slip of the pen, which must not cost gigabytes."""

_WRITE_TRUTH = (
    'Give it in truth.json: {"FILE": {"size": [height, width], "runs": [class, pixels, class, pixels, ...]}}, '
    "the runs of pixels of one class in reading order; 0 is the background, 255 is not judged."
)


class Segmentation(ImageTask):
    """The task `segmentation`."""

    metric = "mIoU"
    higher_is_better = True

    def __init__(self, options: SegmentationOptions) -> None:
        self.options = options

    def decode(self, outputs: Mapping[str, NDArray[Any]], size: tuple[int, int]) -> Prediction:
        """The class of each pixel of the image by the one output, (1, maps, height, width) or as `layout` says.

        Maps are stretched to `size`, (height, width), bilinearly, before a class is chosen. Raises StepError for
        several outputs, another shape and values that are no numbers.
        """
        maps = _activated(_maps(outputs, self.options.layout), self.options.activation)
        every_class = self.options.activation in ("softmax", "argmax")
        if every_class and len(maps) < 2:
            raise StepError(
                f"{self.options.activation} chooses between classes, but the output has one map",
                where="task.activation",
                remedy="Take sigmoid for a map of logits, none for one of probabilities.",
            )
        # One map at a time is brought to the image's size: all of them at once may not fit into memory.
        least = -np.inf if self.options.activation == "argmax" else np.float32(self.options.threshold)
        best = np.full(size, least, np.float32)
        labels = np.zeros(size, np.uint8)
        for number, values in enumerate(maps):
            stretched = values if values.shape == size else stretch(values, *size)
            better = stretched > best
            labels[better] = number if every_class else number + 1
            np.copyto(best, stretched, where=better)
        classes = len(maps) + (0 if every_class else 1)
        return {"size": list(size), "classes": classes, "runs": runs(labels)}

    def check_truth(self, truth: Prediction, name: str) -> None:
        """StepError naming the sample where its size or runs are missing, malformed or do not fill the image."""
        _labels(truth, f"sample {name}")

    def score(self, predictions: Sequence[Prediction], truths: Sequence[Prediction]) -> Score:
        """The mean over the classes of intersection over union, each of the pixels of all samples.

        `Score.counts` has two columns a class, (intersection, union), the background's only where it is judged. Raises
        StepError where a truth is of another size or has a class that the model has not, NothingToScore where no truth
        holds any judged class.
        """
        first = 0 if self.options.background else 1
        rows = [
            _overlaps(_labels(answer, f"answer {index}"), _labels(truth, f"sample {index}"), answer["classes"], index)
            for index, (answer, truth) in enumerate(zip(predictions, truths, strict=True))
        ]
        table = np.array(rows, np.int64)[:, first:]
        wanted = table[..., 2].sum(axis=0)
        if not wanted.any():
            raise NothingToScore(
                "no sample has a pixel of any class in the ground truth or in the float model's answers for it",
                remedy="Add samples with something to find; without ground truth, check scale, mean and std of "
                "model.inputs and the task's activation.",
            )
        counts = table[..., :2].reshape(len(rows), -1)
        totals = counts.sum(axis=0)
        parts = {
            f"class_{first + number}": float(share)
            for number, share in enumerate(_shares(totals))
            if not np.isnan(share)
        }
        return Score(float(self.value(totals)), parts, counts)

    def value(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Mean over the classes that any answer or truth holds; 1 where none does."""
        shares = _shares(totals)
        held = ~np.isnan(shares)
        number = held.sum(axis=-1)
        return np.where(number > 0, np.where(held, shares, 0).sum(axis=-1) / np.maximum(number, 1), 1.0)


def runs(labels: NDArray[np.uint8]) -> list[int]:
    """[class, pixels, class, pixels, …] of `labels` (height, width), in reading order."""
    flat = labels.ravel()
    starts = np.flatnonzero(np.diff(flat, prepend=flat[:1] ^ 1))
    lengths = np.diff(starts, append=flat.size)
    found: list[int] = np.stack([flat[starts], lengths], axis=1).ravel().tolist()
    return found


def _maps(outputs: Mapping[str, NDArray[Any]], layout: str) -> NDArray[np.float32]:
    """(maps, height, width) of the one output."""
    if len(outputs) != 1:
        raise StepError(
            f"segmentation reads one output, but the model has {len(outputs)}",
            choices=outputs,
            remedy="Name the maps alone under model.outputs.",
        )
    ((name, values),) = outputs.items()
    if values.ndim != 4 or values.shape[0] != 1 or 0 in values.shape:
        raise StepError(f"output {name!r} of shape {list(values.shape)} is not maps of one image, {layout}")
    maps: NDArray[np.float32] = np.moveaxis(values[0], layout.index("C") - 1, 0).astype(np.float32)
    if len(maps) >= VOID:
        raise StepError(
            f"output {name!r} of shape {list(values.shape)} has {len(maps)} maps in {layout}, more than {VOID - 1}",
            where="task.layout",
            remedy="Correct the layout.",
        )
    if not np.isfinite(maps).all():
        raise StepError(f"output {name!r} holds values that are not finite")
    return maps


def _activated(maps: NDArray[np.float32], activation: str) -> NDArray[np.float32]:
    if activation == "sigmoid":
        # Of the negative magnitude, so that the exponential never overflows.
        small = np.exp(-np.abs(maps))
        return np.where(maps >= 0, 1 / (1 + small), small / (1 + small))
    if activation == "softmax":
        powers = np.exp(maps - maps.max(axis=0))
        shares: NDArray[np.float32] = powers / powers.sum(axis=0)
        return shares
    return maps


def _labels(answer: Prediction, whose: str) -> NDArray[np.uint8]:
    """(height, width) of an answer or a truth; StepError where its runs make none."""
    size, flat = answer.get("size"), answer.get("runs")
    if not _whole_numbers(size, 1) or len(size) != 2 or not _whole_numbers(flat, 0) or len(flat) % 2:
        raise StepError(f"{whose} has no ground truth of 'size' and 'runs' in whole numbers", remedy=_WRITE_TRUTH)
    classes, lengths = flat[::2], flat[1::2]
    pixels = size[0] * size[1]
    if pixels > _LARGEST:
        raise StepError(f"the 'size' of {whose}, {size[0]} × {size[1]}, is no photo's", remedy=_WRITE_TRUTH)
    if max(classes, default=0) > VOID or sum(lengths) != pixels:
        raise StepError(
            f"the 'runs' of {whose} have {sum(lengths)} pixels of classes up to {max(classes, default=0)}, "
            f"the image of {size[0]} × {size[1]} has {pixels} of classes up to {VOID}",
            remedy=_WRITE_TRUTH,
        )
    return np.repeat(np.array(classes, np.uint8), lengths).reshape(size)


def _whole_numbers(values: object, least: int) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int and value >= least for value in values)


def _overlaps(
    answer: NDArray[np.uint8], truth: NDArray[np.uint8], classes: int, index: int
) -> list[tuple[int, int, int]]:
    """(intersection, union, truth) of each class, in pixels of one sample."""
    if answer.shape != truth.shape:
        raise StepError(
            f"the ground truth of sample {index} is of {truth.shape[0]} × {truth.shape[1]} pixels, "
            f"the image has {answer.shape[0]} × {answer.shape[1]}",
            remedy=_WRITE_TRUTH,
        )
    judged = truth != VOID
    unknown = truth[judged].max(initial=0)
    if unknown >= classes:
        raise StepError(
            f"the ground truth of sample {index} has class {unknown}, the model has 0 to {classes - 1}",
            remedy="Correct the class, or task.activation: softmax and argmax count the background as a map, "
            "none and sigmoid do not.",
        )
    # How often each pair of classes meets: one pass whatever their number.
    pairs = answer[judged].astype(np.intp) * classes + truth[judged]
    met = np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)
    both, of_truth = met.diagonal(), met.sum(axis=0)
    union = met.sum(axis=1) + of_truth - both
    return list(zip(both.tolist(), union.tolist(), of_truth.tolist(), strict=True))


def _shares(totals: NDArray[np.int64]) -> NDArray[np.float64]:
    """(…, 2 classes) → (…, classes): intersection over union, NaN where nothing is united."""
    both, union = totals[..., 0::2], totals[..., 1::2]
    return np.where(union > 0, both / np.maximum(union, 1), np.nan)
