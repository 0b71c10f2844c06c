"""Kinds that other distributions add, by Python entry points: tasks, kinds of data set, range estimators,
models.

    [project.entry-points."anfbuild.tasks"]
    counting = "my_package.counting:Counting"

What is looked up here is what is installed; a recipe only names it, and can make nothing be installed or imported that
is not. The room that a kind belongs to says what the object must be.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from typing import Any

from anfbuild.errors import StepError

# Not written whole: whoever names a module in quotes is taken to start it, and has all of it in his steps' keys.
_PREFIX = "anfbuild"
TASKS = f"{_PREFIX}.tasks"
DATASETS = f"{_PREFIX}.datasets"
ESTIMATORS = f"{_PREFIX}.estimators"
MODELS = f"{_PREFIX}.models"


@cache
def installed(group: str) -> dict[str, metadata.EntryPoint]:
    """Name -> entry point, of the kinds that installed distributions add to `group`; the first of a name counts."""
    found: dict[str, metadata.EntryPoint] = {}
    for point in metadata.entry_points(group=group):
        found.setdefault(point.name, point)
    return found


def load(group: str, name: str) -> Any:
    """The object behind an installed kind. Raises StepError where its module does not import."""
    point = installed(group)[name]
    try:
        return point.load()
    except Exception as error:  # code of others: it may raise what it likes
        raise StepError(
            f"the plug-in {name!r} cannot be loaded: {type(error).__name__}: {error}",
            where=point.value,
            remedy="Mend or reinstall the distribution that it comes from.",
        ) from error
