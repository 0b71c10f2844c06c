"""How steps turn a folder of samples into what a model is fed, and into what it answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from anfbuild.datasets import Sample
    from anfbuild.tasks import Prediction, Task


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
    """The samples of `folder` in order, each with the arrays that `task` makes of it: {input: array}."""
    from anfbuild import datasets

    for sample in datasets.read(folder, limit):
        yield sample, {name: task.preprocess(sample.image, spec) for name, spec in inputs.items()}


def answer_samples(folder: Path, task: Task, inputs: Mapping[str, Any], model: Path) -> list[Answered]:
    """Run the model over the samples of `folder`.

    Raises StepError for a sample whose ground truth the task cannot use.
    """
    from anfbuild import graph

    asked: list[tuple[Prediction, tuple[int, int]]] = []

    def feeds() -> Iterator[dict[str, np.ndarray]]:
        for sample, arrays in read_feeds(folder, task, inputs):
            task.check_truth(sample.truth, sample.name)
            asked.append((sample.truth, sample.image.shape[:2]))
            yield arrays

    return [
        Answered(truth, size, task.decode(outputs, size))
        for outputs, (truth, size) in zip(graph.run_each(model, feeds()), asked, strict=False)
    ]
