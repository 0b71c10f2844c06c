"""Pins: builds that stay in the store whatever is cleared, as pins/NAME/<key of the goal>.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from anfbuild.engine.files import NotRegular, read_regular
from anfbuild.engine.store import Store
from anfbuild.errors import RecipeError, StepError


def pin_file(store: Store, name: str, key: str) -> Path:
    """Where the pin of the build of recipe `name` whose goal has `key` is, or would be."""
    return store.root / "pins" / name / f"{key}.json"


def pin_files(store: Store) -> list[Path]:
    """The pins of a store, sorted."""
    return sorted((store.root / "pins").glob("*/*.json"))


def pin(store: Store, name: str, goal: str, key: str, steps: Mapping[str, str]) -> Path:
    """Keep the build of recipe `name` whose goal has `key` and whose steps those of `steps`; gives the pin's file.

    Raises RecipeError: a step of it has no result any more.
    """
    document = {"recipe": name, "goal": goal, "steps": dict(steps)}
    with store.lock("commit"):  # what clears the store holds it too
        gone = [step for step, key in steps.items() if not store.entry(key).is_file()]
        if gone:
            raise RecipeError(
                f"step {gone[0]!r} of this build has no result in the store",
                where=name,
                remedy=f"Build first: anfbuild +recipe={name}.",
            )
        path = pin_file(store, name, key)
        store.write(path, json.dumps(document, sort_keys=True, indent=1).encode())
    return path


def unpin(store: Store, name: str, key: str | None) -> Path:
    """Take the pin away; gives the file that it was in. Raises RecipeError: there is none, with those there are."""
    path = pin_file(store, name, key or "")
    try:
        path.unlink()
    except FileNotFoundError as error:
        others = [str(file) for file in pin_files(store) if file.parent.name == name]
        raise RecipeError(
            f"this build of {name!r} is not pinned" + (": only others of it are" if others else ""),
            where=str(store.root / "pins" / name),
            choices=others,
            remedy="Give the overrides that the pinned build had, or remove its file."
            if others
            else "anfbuild cache status says how much is pinned.",
        ) from error
    return path


def read_pin(path: Path) -> frozenset[str]:
    """The keys that a pin's file keeps. Raises StepError: it cannot be read, so that nobody knows what it keeps."""
    try:
        keys = frozenset(json.loads(read_regular(path))["steps"].values())
        if not keys or not all(isinstance(key, str) for key in keys):
            raise ValueError("it names no keys")
    except (OSError, NotRegular, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise StepError(
            f"this pin cannot be read, and what it keeps is not known: {error}",
            where=str(path),
            remedy="Pin the build again with anfbuild cache pin, or remove this file.",
        ) from error
    return keys


def pinned_keys(store: Store) -> frozenset[str]:
    """The keys that any pin keeps. Raises StepError: one cannot be read."""
    return frozenset[str]().union(*map(read_pin, pin_files(store)))
