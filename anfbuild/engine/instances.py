"""The graph as it is run: every step once, or once for each part of a recipe, `convert[landmark]`.

What a part is, is the caller's affair. An instance reads its own part's view of the recipe, and calls its inputs as the
step does; the name of the part is in no key, so that the same work of two parts, or of two recipes, is done once.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping
from typing import Any

from anfbuild.engine.step import Step

_EACH = "[*]"
"""Ends a need of a step over all parts: that step of every part."""


@dataclasses.dataclass(frozen=True)
class Instance:
    """A step as it is run: what it needs of which instances, and the recipe that it reads."""

    step: Step
    tree: Mapping[str, Any]
    needs: Mapping[str, tuple[str, str]]
    """Need as the step calls it -> (instance, folder of it or "" for all)."""
    prefix: str = ""
    """What the recipe has before the config paths of the step: `components.landmark.`, for messages."""


@dataclasses.dataclass(frozen=True)
class Part:
    """One part of a recipe: the whole recipe as this part sees it, and where in the recipe that is said."""

    tree: Mapping[str, Any]
    prefix: str


def part_of(instance: str) -> str | None:
    """The part that an instance is of: `landmark` of `convert[landmark]`; None where it is of none."""
    found = re.fullmatch(r"[^\[]+\[(.+)\]", instance)
    return found[1] if found else None


def step_of(instance: str) -> str:
    """The step that an instance is of: `convert` of `convert[landmark]`."""
    return instance.partition("[")[0]


def expand(
    steps: Mapping[str, Step],
    tree: Mapping[str, Any],
    parts: Mapping[str, Part] | None = None,
    joint: Mapping[str, Step] | None = None,
) -> dict[str, Instance]:
    """Name -> instance. Without `parts` each of `steps` is one, under its own name.

    With them each of `steps` is one for every part, and each of `joint` one over all parts: such a step reads `tree`,
    and needs a joint step (`package`), or a step of every part (`report[*]`, `report[*]/folder`).
    """
    if not parts:
        return {name: Instance(step, tree, {need: _split(need) for need in step.needs}) for name, step in steps.items()}
    found = {}
    for part, view in parts.items():
        for name, step in steps.items():
            needs = {need: (f"{of}[{part}]", folder) for need in step.needs for of, folder in [_split(need)]}
            found[f"{name}[{part}]"] = Instance(step, view.tree, needs, view.prefix)
    for name, step in (joint or {}).items():
        found[name] = Instance(step, tree, dict(pair for need in step.needs for pair in _of_all(need, parts)))
    return found


def _split(need: str) -> tuple[str, str]:
    step, _, folder = need.partition("/")
    return step, folder


def _of_all(need: str, parts: Iterable[str]) -> Iterable[tuple[str, tuple[str, str]]]:
    step, folder = _split(need)
    if not step.endswith(_EACH):
        yield need, (step, folder)
        return
    for part in parts:
        name = f"{step.removesuffix(_EACH)}[{part}]"
        yield f"{name}/{folder}" if folder else name, (name, folder)
