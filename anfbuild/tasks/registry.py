"""The tasks by name. Light, so that a recipe is checked at start-up without numpy.

A distribution may add more: an entry point of the group `anfbuild.tasks` is called with the options and returns a Task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from anfbuild import plugins
from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.tasks.inputs import read_input, read_tokens
from anfbuild.tasks.options import (
    LandmarksOptions,
    NoOptions,
    SegmentationOptions,
    TextDetectionOptions,
    read_options,
)
from anfbuild.tasks.task import InputSpec, Task

Make = Callable[[Mapping[str, object], Sequence[str]], Task]


def _landmarks(options: Mapping[str, object], _: Sequence[str]) -> Task:
    from anfbuild.tasks.landmarks import Landmarks

    return Landmarks(read_options(LandmarksOptions, options))


def _segmentation(options: Mapping[str, object], _: Sequence[str]) -> Task:
    from anfbuild.tasks.segmentation import Segmentation

    return Segmentation(read_options(SegmentationOptions, options))


def _text_detection(options: Mapping[str, object], _: Sequence[str]) -> Task:
    from anfbuild.tasks.text_detection import TextDetection

    return TextDetection(read_options(TextDetectionOptions, options))


def _text_embedding(_: Mapping[str, object], vocabulary: Sequence[str]) -> Task:
    from anfbuild.tasks.text_embedding import TextEmbedding

    return TextEmbedding(vocabulary)


def _text_recognition(_: Mapping[str, object], vocabulary: Sequence[str]) -> Task:
    from anfbuild.tasks.text_recognition import TextRecognition

    return TextRecognition(vocabulary)


KINDS: dict[str, tuple[type[Any], Make]] = {
    "landmarks": (LandmarksOptions, _landmarks),
    "segmentation": (SegmentationOptions, _segmentation),
    "text_detection": (TextDetectionOptions, _text_detection),
    "text_embedding": (NoOptions, _text_embedding),
    "text_recognition": (NoOptions, _text_recognition),
}
"""Kind -> its options, and what makes the task of them and of the vocabulary."""

ON_TEXTS = frozenset(("text_embedding",))
"""The kinds whose samples are texts; those of all others are images."""


def check(kind: str, options: Mapping[str, object]) -> None:
    """Refuse a task that cannot be, without loading it.

    Raises RecipeError: an unknown kind, an unknown option, a value that is no number or out of its range.
    """
    if kind not in KINDS:
        if kind in plugins.installed(plugins.TASKS):
            return  # its options are those of its file in conf/task
        known = [*KINDS, *plugins.installed(plugins.TASKS)]
        raise RecipeError(f"unknown task {kind!r}", where="task.kind", choices=known, remedy=did_you_mean(kind, known))
    read_options(KINDS[kind][0], options)


def check_inputs(kind: str, inputs: Mapping[str, InputSpec]) -> None:
    """RecipeError for an input of the model (name -> spec) that no sample of the task `kind` can be made into."""
    for name, spec in inputs.items():
        if kind in ON_TEXTS:
            read_tokens(name, spec, where=f"model.inputs.{name}")
        else:
            read_input(spec, where=f"model.inputs.{name}")


def get(kind: str, options: Mapping[str, object], vocabulary: Sequence[str] = ()) -> Task:
    """The task `kind` with `options` (the keys of the recipe's group without `kind`; what is left out is default).

    `vocabulary` are the texts that the model's numbers stand for; tasks that write or read no text need none.
    Raises RecipeError as `check` does.
    """
    check(kind, options)
    if kind not in KINDS:
        task: Task = plugins.load(plugins.TASKS, kind)(options)
        return task
    return KINDS[kind][1](options, vocabulary)
