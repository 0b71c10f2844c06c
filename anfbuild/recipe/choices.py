"""Early checks of what is chosen: groups on the command line, and the defaults list of a recipe.

Hydra would refuse most of it too, later and without a line.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import PurePosixPath

from hydra.core.override_parser.types import Override

from anfbuild.errors import RecipeError
from anfbuild.recipe.catalogue import Catalogue
from anfbuild.recipe.document import Document
from anfbuild.recipe.hints import nearest
from anfbuild.recipe.places import COMMAND_LINE
from anfbuild.recipe.schema import GROUPS, Config

_FIXED_PARTS = {
    field.name for field in dataclasses.fields(Config) if dataclasses.is_dataclass(field.default_factory)
} | set(GROUPS)
"""Top-level keys that hold a mapping."""


def is_group(override: Override) -> bool:
    """Whether an override chooses a group, rather than giving a value inside of one."""
    return override.key_or_group in GROUPS and not isinstance(override.value(), dict)


def check_choice(override: Override, catalogue: Catalogue) -> None:
    """Raises RecipeError: a group is added or removed, or there is no such choice."""
    group, value = override.key_or_group, override.value()
    choices = catalogue.choices(group)
    if override.is_delete() or override.package is not None:
        raise RecipeError(
            f"{override.input_line!r}: every recipe has exactly one {group!r}",
            where=COMMAND_LINE,
            choices=choices,
            remedy=f"Choose another with {group}=CHOICE.",
        )
    check_value(group, value, choices, COMMAND_LINE)
    if override.is_add() or override.is_force_add():
        raise RecipeError(
            f"{override.input_line!r}: every recipe has a {group!r} already",
            where=COMMAND_LINE,
            remedy=f"Write {group}={value}, without the +.",
        )


def check_defaults(config_path: str, catalogue: Catalogue, above: Iterable[str] = ()) -> None:
    """Check the defaults list of a recipe and of the recipes that it builds on.

    Raises RecipeError: an entry that is not `_self_`, another recipe or `override /GROUP: CHOICE`; no such group,
    choice or recipe; recipes that build on one another in a circle; a group named in the body of the recipe.
    """
    document = catalogue.document(config_path)
    assert document is not None
    _check_body(document)
    entries = document.data.get("defaults", [])
    if not isinstance(entries, list):
        raise RecipeError("`defaults` must be a list", where=document.place("defaults"))
    chosen = False
    for index, entry in enumerate(entries):
        where = document.place(f"defaults[{index}]")
        if chosen and isinstance(entry, str) and entry != "_self_":
            raise RecipeError(
                f"{entry!r} stands after a choice of a group", where=where, remedy="Name recipes to build on first."
            )
        chosen = chosen or isinstance(entry, dict)
        if isinstance(entry, str) and entry != "_self_":
            _check_base(config_path, entry, where, catalogue, [*above, config_path])
        elif isinstance(entry, dict):
            _check_override(entry, where, catalogue)
        elif entry != "_self_":
            raise RecipeError(f"{entry!r} is no entry of a defaults list", where=where)


def has_components(config_path: str, catalogue: Catalogue) -> bool:
    """Whether a recipe, or one that it builds on, has components. Its defaults were checked."""
    document = catalogue.document(config_path)
    assert document is not None
    bases = [entry for entry in document.data.get("defaults", []) if isinstance(entry, str) and entry != "_self_"]
    return "components" in document.data or any(has_components(_base(config_path, entry), catalogue) for entry in bases)


def _base(config_path: str, entry: str) -> str:
    """The recipe that `entry` of a defaults list names, as Hydra calls it."""
    return entry.removeprefix("/") if entry.startswith("/") else (PurePosixPath(config_path).parent / entry).as_posix()


def _check_body(document: Document) -> None:
    for key in sorted(_FIXED_PARTS & document.data.keys()):
        value = document.data[key]
        if isinstance(value, dict):
            continue
        if key in GROUPS:
            choice = value if isinstance(value, str) else "CHOICE"
            remedy = f"Choose a group in the defaults list: `- override /{key}: {choice}`."
        else:
            remedy = f"Write `{key}:` and its keys indented below it."
        raise RecipeError(f"{key!r} holds a mapping, not {value!r}", where=document.place(key), remedy=remedy)


def _check_base(config_path: str, entry: str, where: str, catalogue: Catalogue, above: list[str]) -> None:
    path = _base(config_path, entry)
    if path in above:
        raise RecipeError(f"the recipe {entry!r} builds on itself", where=where, remedy="Remove the entry.")
    names = catalogue.recipes()
    if path.removeprefix("recipe/") not in names:
        raise RecipeError(
            f"there is no recipe {entry!r} to build on",
            where=where,
            choices=names,
            remedy=nearest(path.removeprefix("recipe/"), names, "Name it from here, or as /recipe/NAME."),
        )
    check_defaults(path, catalogue, above)


def _check_override(entry: dict[object, object], where: str, catalogue: Catalogue) -> None:
    key, value = next(iter(entry.items())) if len(entry) == 1 else (None, None)
    if not isinstance(key, str):
        raise RecipeError(f"{entry!r} must hold one group", where=where, remedy="Give each group an entry of its own.")
    group = key.split()[-1].removeprefix("/")
    if group not in GROUPS:
        raise RecipeError(f"there is no group {group!r}", where=where, choices=GROUPS, remedy=nearest(group, GROUPS))
    if key.split() != ["override", f"/{group}"]:
        raise RecipeError(
            f"{key!r} does not choose a group", where=where, remedy=f"Write `- override /{group}: {value}`."
        )
    check_value(group, value, catalogue.choices(group), where)


def check_value(group: str, value: object, choices: list[str], where: str) -> None:
    """Raises RecipeError: a group has no such choice."""
    if value not in choices:
        raise RecipeError(
            f"there is no {group} {'null' if value is None else repr(value)}",
            where=where,
            choices=choices,
            remedy=nearest(value, choices, f"A file conf/{group}/NAME.yaml in your project adds one."),
        )
