"""How steps turn a folder of samples into what a model is fed, and into what it answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import numpy as np

    from anfbuild.datasets import Sample
    from anfbuild.graph import Session
    from anfbuild.tasks import Prediction, Task

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Answered:
    """A sample that a model has answered."""

    truth: Prediction
    size: tuple[int, int]
    """(height, width) of the image in pixels."""
    answer: Prediction


def split_task(task: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The recipe's task as its kind and its options."""
    return task["kind"], {name: value for name, value in task.items() if name != "kind"}


def read_feeds(
    folder: Path, task: Task, inputs: Mapping[str, Any], limit: int | None = None
) -> Iterator[tuple[Sample, dict[str, np.ndarray]]]:
    """The samples of `folder` in order, each with the arrays that `task` makes of it: {input: array}.

    The next sample is read and made ready while the caller works on the one before.
    """
    from anfbuild import datasets

    return _ahead(
        (sample, {name: task.preprocess(sample.image, spec) for name, spec in inputs.items()})
        for sample in datasets.read(folder, limit)
    )


def answer_samples(folder: Path, task: Task, inputs: Mapping[str, Any], session: Session) -> list[Answered]:
    """Run the model over the samples of `folder`; an answer is decoded while the model runs on the next sample.

    Raises StepError for a sample whose ground truth the task cannot use.
    """
    decoding = []
    with ThreadPoolExecutor(1) as pool:
        for sample, feeds in read_feeds(folder, task, inputs):
            task.check_truth(sample.truth, sample.name)
            size = sample.image.shape[:2]
            decoding.append((sample.truth, size, pool.submit(task.decode, session.run(feeds), size)))
        return [Answered(truth, size, answer.result()) for truth, size, answer in decoding]


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made in another thread while the one before is used."""
    end = object()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, end)
        while (item := coming.result()) is not end:
            coming = pool.submit(next, items, end)
            yield cast(T, item)
