"""Text embedding: a text to a direction, so that a question lies nearest to the passage that answers it.

An answer is {"vector": […]} of length 1. The truth of a passage is {"passage": NAME}, that of a query
{"relevant": [NAME…]}.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import StepError
from anfbuild.tasks.inputs import read_tokens
from anfbuild.tasks.outputs import only_output
from anfbuild.tasks.task import Content, InputSpec, NothingToScore, Prediction, Score
from anfbuild.tasks.wordpiece import WordPiece

_DIGITS = 6
"""Of a vector's elements, after the point: CPUs agree on a float network's values to about that."""
_WRITE_TRUTH = 'Write {"passage": "NAME"} for a passage and {"relevant": ["NAME"]} for a query.'


class TextEmbedding:
    """The task `text_embedding`. `vocabulary` are the word pieces of a BERT."""

    metric = "recall_at_1"
    higher_is_better = True

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._vocabulary = vocabulary

    def feeds(self, content: Content, specs: Mapping[str, InputSpec]) -> dict[str, NDArray[Any]]:
        """The inputs of a BERT, cut or padded to their length; the last piece of a text that is cut is [SEP] too."""
        pieces = self._pieces(content)
        made = {}
        for name, spec in specs.items():
            length, dtype = read_tokens(name, spec, f"model.inputs.{name}")
            kept = pieces if len(pieces) <= length else [*pieces[: length - 1], pieces[-1]]
            row = np.full(length, self._tokenizer.padding if name == "input_ids" else 0, dtype)
            if name != "token_type_ids":  # one text alone: all of it is the first of two
                row[: len(kept)] = kept if name == "input_ids" else 1
            made[name] = row[None]
        return made

    def size(self, content: Content) -> tuple[int, int]:
        """(1, pieces), the marks around the text counted."""
        return 1, len(self._pieces(content))

    def decode(self, outputs: Mapping[str, NDArray[Any]], size: tuple[int, int]) -> Prediction:
        """The one output at length 1: the mean over the pieces of the text of (1, tokens, n), or (1, n) as it is.

        Raises StepError for other outputs and values that are no numbers.
        """
        name, values = only_output(outputs, "text embedding", "table of embeddings")
        if values.ndim not in (2, 3) or values.shape[0] != 1 or 0 in values.shape:
            raise StepError(f"output {name!r} of shape {list(values.shape)} is neither (1, tokens, n) nor (1, n)")
        vector = values[0].astype(np.float64)
        if vector.ndim == 2:
            vector = vector[: size[1]].mean(axis=0)
        length = float(np.sqrt((vector * vector).sum()))
        return {"vector": [round(value, _DIGITS) for value in (vector / (length or 1.0)).tolist()]}

    def check_truth(self, truth: Prediction, name: str) -> None:
        """StepError naming the sample where the truth is neither a passage's nor a query's."""
        _relevant(truth, name)

    def score(self, predictions: Sequence[Prediction], truths: Sequence[Prediction]) -> Score:
        """The share of queries whose nearest passage, by the cosine, is a relevant one; all samples are searched.

        A query without a relevant passage among the samples is not judged. `parts` has the mean `cosine` of a query and
        its nearest relevant passage. `Score.counts` has the columns (found, queries). Where another model's answers
        stand for the truth, every text asks for the one that is nearest to it by these, and `cosine` is between the
        two models. Raises NothingToScore where no query can be judged.
        """
        if all("vector" in truth for truth in truths):
            return self._against(_vectors(predictions), _vectors(truths))
        wanted = [_relevant(truth, str(index)) for index, truth in enumerate(truths)]
        vectors = _vectors(predictions)
        passages = [index for index, names in enumerate(wanted) if names is None]
        searched = vectors[passages]
        names = [truths[index]["passage"] for index in passages]
        counts = np.zeros((len(truths), 2), np.int64)
        cosines = []
        for index, relevant in enumerate(wanted):
            fitting = [place for place, name in enumerate(names) if relevant and name in relevant]
            if fitting:
                near = searched @ vectors[index]
                counts[index] = int(near.argmax()) in fitting, 1
                cosines.append(float(near[fitting].max()))
        if not cosines:
            raise NothingToScore(
                "no sample is a query with its passage among the samples, so nothing can be scored",
                remedy="Judge on more samples (evaluation.samples).",
            )
        return Score(float(self.value(counts.sum(axis=0))), {"cosine": sum(cosines) / len(cosines)}, counts)

    def _against(self, vectors: NDArray[np.float64], judges: NDArray[np.float64]) -> Score:
        if len(judges) < 2:
            raise NothingToScore("one text has no nearest other one", remedy="Judge on more samples.")
        found = _nearest(vectors) == _nearest(judges)
        counts = np.stack([found, np.ones_like(found)], axis=1).astype(np.int64)
        return Score(float(found.mean()), {"cosine": float((vectors * judges).sum(axis=1).mean())}, counts)

    def value(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """Found over queries; 1 where there is no query."""
        return np.where(totals[..., 1] > 0, totals[..., 0] / np.maximum(totals[..., 1], 1), 1.0)

    @functools.cached_property
    def _tokenizer(self) -> WordPiece:
        return WordPiece(self._vocabulary)

    def _pieces(self, content: Content) -> list[int]:
        if not isinstance(content, str):
            raise StepError(
                "the task wants texts, but the sample is an image", remedy="Choose another data set or task."
            )
        return self._tokenizer.encode(content)


def _vectors(predictions: Sequence[Prediction]) -> NDArray[np.float64]:
    return np.array([prediction["vector"] for prediction in predictions], np.float64)


def _nearest(vectors: NDArray[np.float64]) -> NDArray[np.intp]:
    """For each the index of the nearest other one."""
    likeness = vectors @ vectors.T
    np.fill_diagonal(likeness, -np.inf)
    nearest: NDArray[np.intp] = likeness.argmax(axis=1)
    return nearest


def _relevant(truth: Prediction, name: str) -> list[str] | None:
    """The passages that answer a query; None where the sample is a passage."""
    if isinstance(truth.get("passage"), str) and "relevant" not in truth:
        return None
    relevant = truth.get("relevant")
    if "passage" in truth or not isinstance(relevant, list) or not all(isinstance(item, str) for item in relevant):
        raise StepError(f"sample {name} is neither a passage nor a query in the ground truth", remedy=_WRITE_TRUTH)
    return relevant
