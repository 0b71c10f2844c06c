"""Text recognition: an image of one line of text to the text, by CTC, and how many lines are read without an error.

An answer is {"text": …, "score": …}, the truth {"text": …}. Characters count as they are: case and spaces too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import StepError
from anfbuild.tasks.images import ImageTask
from anfbuild.tasks.inputs import read_input
from anfbuild.tasks.outputs import only_output
from anfbuild.tasks.preprocess import check_image, preprocess
from anfbuild.tasks.task import InputSpec, NothingToScore, Prediction, Score

_BLANK = 0
_DIGITS = 5
"""Of a score, after the point: CPUs agree on a mean of probabilities to about seven."""
_WRITE_TRUTH = 'Give it in truth.json: {"FILE": {"text": "WHAT THE LINE SAYS"}}.'


class TextRecognition(ImageTask):
    """The task `text_recognition`. `vocabulary` are the characters of the classes after the blank."""

    metric = "exact_match"
    higher_is_better = True

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = vocabulary

    def preprocess(self, image: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.float32] | NDArray[np.uint8]:
        """The line at the input's height and, as far as there is room, at its own aspect; zeros to the right of it."""
        check_image(image)
        wanted = read_input(spec)
        height, width = image.shape[:2]
        used = min(wanted.width, math.ceil(width * wanted.height / height))
        axis = wanted.layout.index("W")
        shape = list(spec["shape"])
        shape[axis] = used
        line = preprocess(image, {**spec, "shape": shape})
        shape[axis] = wanted.width - used
        return np.concatenate([line, np.zeros(shape, line.dtype)], axis=axis)

    def decode(self, outputs: Mapping[str, NDArray[Any]], size: tuple[int, int]) -> Prediction:  # noqa: ARG002  # a text has no place in the image
        """The likeliest class of each step, repetitions merged and blanks dropped (Graves et al., 2006).

        The one output is (1, steps, classes) of probabilities: blank first, then the vocabulary, then, where there is
        one class more, the space. Raises StepError for other outputs and values that are no numbers.
        """
        probabilities = _probabilities(outputs)
        characters = self._characters(probabilities.shape[1])
        best = probabilities.argmax(axis=1)
        starts = [
            (step, label)
            for label, run in groupby(range(len(best)), key=lambda step: int(best[step]))
            for step in [next(run)]
            if label != _BLANK
        ]
        scores = [float(probabilities[step, label]) for step, label in starts]
        return {
            "text": "".join(characters[label - 1] for _, label in starts),
            "score": round(sum(scores) / len(scores), _DIGITS) if scores else 0.0,
        }

    def check_truth(self, truth: Prediction, name: str) -> None:
        """StepError naming the sample where there is no text in the truth."""
        if not isinstance(truth.get("text"), str) or not truth["text"]:
            raise StepError(f"sample {name} has no ground truth 'text'", remedy=_WRITE_TRUTH)

    def score(self, predictions: Sequence[Prediction], truths: Sequence[Prediction]) -> Score:
        """The share of lines whose text is exactly right; `parts` has the character error rate, `cer`.

        `Score.counts` has the columns (right, lines, edits, characters): edits are Levenshtein's. Raises NothingToScore
        where no sample has any text.
        """
        pairs = [(answer["text"], truth["text"]) for answer, truth in zip(predictions, truths, strict=True)]
        if not any(wanted for _, wanted in pairs):
            raise NothingToScore(
                "no sample has any text to score against",
                remedy="Where the float model judges, it reads nothing: check scale, mean and std of model.inputs, and "
                "source.vocabulary.",
            )
        counts = np.array(
            [(found == wanted, 1, distance(found, wanted), len(wanted)) for found, wanted in pairs], np.int64
        ).reshape(-1, 4)
        totals = counts.sum(axis=0)
        return Score(float(self.value(totals)), {"cer": int(totals[2]) / max(int(totals[3]), 1)}, counts)

    def value(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Right lines over lines."""
        return np.asarray(totals[..., 0] / np.maximum(totals[..., 1], 1))

    def _characters(self, classes: int) -> Sequence[str]:
        """The character of each class but the blank."""
        spare = classes - 1 - len(self._vocabulary)
        if spare not in (0, 1) or not self._vocabulary:
            raise StepError(
                f"the model tells {classes} classes apart, but its vocabulary has {len(self._vocabulary)} characters; "
                "a blank before them and a space behind them may be missing in it, nothing else",
                remedy="Give the vocabulary that the model was trained with under source.vocabulary, a character a "
                "line, or in the model's metadata as 'character'.",
            )
        return [*self._vocabulary, " "] if spare else self._vocabulary


def distance(a: str, b: str) -> int:
    """The least number of insertions, deletions and replacements that make `b` of `a` (Levenshtein, 1966)."""
    above = list(range(len(b) + 1))
    for row, x in enumerate(a, start=1):
        line = [row]
        for column, y in enumerate(b, start=1):
            line.append(min(above[column] + 1, line[-1] + 1, above[column - 1] + (x != y)))
        above = line
    return above[-1]


def _probabilities(outputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
    name, values = only_output(outputs, "text recognition", "table of probabilities")
    if values.ndim != 3 or values.shape[0] != 1 or 0 in values.shape:
        raise StepError(f"output {name!r} of shape {list(values.shape)} is not (1, steps, classes)")
    probabilities: NDArray[np.float32] = values[0].astype(np.float32)
    return probabilities
