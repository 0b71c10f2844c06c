"""The tasks by name. Light, so that a recipe is checked at start-up without numpy.

A distribution may add more: an entry point of the group `anfbuild.tasks` is called with the options and returns a Task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anfbuild import plugins
from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.tasks.options import LandmarksOptions, SegmentationOptions, TextDetectionOptions, read_options
from anfbuild.tasks.task import Task


def _landmarks(options: Mapping[str, object]) -> Task:
    from anfbuild.tasks.landmarks import Landmarks

    return Landmarks(read_options(LandmarksOptions, options))


def _segmentation(options: Mapping[str, object]) -> Task:
    from anfbuild.tasks.segmentation import Segmentation

    return Segmentation(read_options(SegmentationOptions, options))


def _text_detection(options: Mapping[str, object]) -> Task:
    from anfbuild.tasks.text_detection import TextDetection

    return TextDetection(read_options(TextDetectionOptions, options))


KINDS: dict[str, tuple[type[Any], Callable[[Mapping[str, object]], Task]]] = {
    "landmarks": (LandmarksOptions, _landmarks),
    "segmentation": (SegmentationOptions, _segmentation),
    "text_detection": (TextDetectionOptions, _text_detection),
}
"""Kind -> its options, and what makes the task of them."""


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


def get(kind: str, options: Mapping[str, object]) -> Task:
    """The task `kind` with `options` (the keys of the recipe's group without `kind`; what is left out is default).

    Raises RecipeError as `check` does.
    """
    check(kind, options)
    if kind not in KINDS:
        task: Task = plugins.load(plugins.TASKS, kind)(options)
        return task
    return KINDS[kind][1](options)
