"""Composing, and remembering what was composed from the same bytes: a recipe is data and comes out the same again.

Importing and running Hydra takes most of the time of a build that has nothing to do.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from anfbuild.atomic import replacing
from anfbuild.recipe.files import fingerprint
from anfbuild.recipe.recipe import Recipe
from anfbuild.recipe.schema import Config


def compose(overrides: Sequence[str], project: Path, memory: Path | None = None) -> Recipe:
    """Compose the recipe that `+recipe=NAME` chooses, with all other overrides applied.

    `project` is the user's folder; its `conf/` and `recipes/` come before ours. `memory` is a folder for recipes that
    composed well: losing it costs time and nothing else. Raises RecipeError with the place.
    """
    key = fingerprint(overrides, project.resolve()) if memory is not None else None
    if memory is None or key is None:
        return _compose(overrides, project)
    file = memory / f"{key}.json"
    config = _load(file)
    if config is not None:
        return Recipe(config["name"], config, lambda key: _compose(overrides, project).place(key))
    recipe = _compose(overrides, project)
    if fingerprint(overrides, project.resolve()) == key:  # else a file changed meanwhile: this may not be the key's
        _save(file, recipe.config)
    return recipe


def _compose(overrides: Sequence[str], project: Path) -> Recipe:
    from anfbuild.recipe import composition

    return composition.compose(overrides, project)


def _load(file: Path) -> dict[str, Any] | None:
    """What `_save` wrote; None where it is not there, damaged or no recipe."""
    with suppress(OSError, ValueError, RecursionError):
        if not file.is_file():  # a FIFO would wait for ever
            return None
        digest, _, text = file.read_bytes().partition(b"\n")
        if digest.decode("ascii") == hashlib.sha256(text).hexdigest():
            config: dict[str, Any] = json.loads(text)
            return config if _fits(config, _defaults()) else None
    return None


@functools.cache
def _defaults() -> dict[str, Any]:
    return dataclasses.asdict(Config())


def _fits(value: object, pattern: object) -> bool:
    """Whether the mappings in `pattern`, a recipe of defaults, are in `value` with the same keys."""
    if not isinstance(pattern, dict):
        return True
    if not isinstance(value, dict) or (pattern and value.keys() != pattern.keys()):
        return False
    return all(_fits(value[key], below) for key, below in pattern.items())


def _save(file: Path, config: dict[str, Any]) -> None:
    """Write `config` atomically, if it survives JSON; a read-only disk is no reason to fail."""
    text = json.dumps(config).encode()  # keys in their order: it is the order of a report's rows
    if json.loads(text) != config:
        return
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as partial:
            partial.write_bytes(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
