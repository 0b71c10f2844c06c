"""How steps make the task, and turn a folder of samples into what a model is fed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anfbuild.steps.files import read_json

if TYPE_CHECKING:
    import numpy as np

    from anfbuild.datasets import Sample
    from anfbuild.tasks import Task


def read_task(kind: str, vocabulary: Path, options: Mapping[str, Any] | None = None) -> Task:
    """The task `kind`, with the texts that `convert` left in the folder `vocabulary`."""
    from anfbuild import tasks

    return tasks.get(kind, options or {}, read_json(vocabulary / "vocabulary.json"))


def read_feeds(
    folder: Path, task: Task, inputs: Mapping[str, Any], limit: int | None = None
) -> Iterator[tuple[Sample, dict[str, np.ndarray]]]:
    """The samples of `folder` in order, each with the arrays that `task` makes of it: {input: array}."""
    from anfbuild.datasets import read

    for sample in read(folder, limit):
        yield sample, task.feeds(sample.content, inputs)
