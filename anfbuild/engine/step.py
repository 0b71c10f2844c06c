"""What a step is. Steps import this module and nothing else of the engine, and it stays tiny on purpose:
its text is part of every step's key, so that an edit here would rebuild the world.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

S = TypeVar("S")


@dataclasses.dataclass(frozen=True)
class Job(Generic[S]):
    """All that a step may look at, and the one folder that it may write to."""

    config: S
    """The step's own slice of the recipe."""
    inputs: Mapping[str, Path]
    """Need, as the step names it -> folder with those files: private copies, so that no step can hurt the store."""
    output: Path
    """An empty folder. What lies in it when the step returns is the step's result."""
    scratch: Path
    """An empty folder that is thrown away."""
    observe: Callable[[str, float], None]
    """Note a figure that differs from run to run (a time, a peak): kept beside the result, never in it."""
    downloads: Path | None = None
    """A folder that outlives the run, for downloads that are not finished: shared by all, and trusted by none."""
    progress: Callable[[int, int | None], None] = lambda *_: None
    """Tell the user how many bytes have come, and how many there are, if that is known."""


@dataclasses.dataclass(frozen=True)
class Step:
    """A named function with what it needs and what it reads of the recipe."""

    name: str
    needs: tuple[str, ...]
    config: type[Any]
    run: Callable[[Job[Any]], None]


def at(path: str, *, content: bool = False, plugin: str | None = None) -> Any:
    """A slice field that holds the value of ONE path of the recipe, such as `target.vtcm_mb`.

    A `*` stands for every key of a mapping: `model.inputs.*.shape` is `{input: shape}`. With `content=True` the value
    names a file or folder outside the store (or null): the step gets the absolute path, the key gets the digest of
    what lies there, so that moving the file changes nothing and editing it changes everything. With `plugin` the value
    may name a kind of that group of entry points: where it does, the key holds the code behind it as well.
    """
    return dataclasses.field(metadata={"path": path, "content": content, "plugin": plugin})


def step(*, needs: tuple[str, ...] = (), config: type[S]) -> Callable[[Callable[[Job[S]], None]], Step]:
    """Make a step of `function`. A need is `step` or `step/folder`: only that folder is seen, and enters the key."""

    def decorate(function: Callable[[Job[S]], None]) -> Step:
        return Step(function.__name__, needs, config, function)

    return decorate
