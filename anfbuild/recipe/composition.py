"""From overrides to a checked recipe.

Hydra composes the files and the choices of groups; the result is merged into the schema, and only then are the
remaining overrides applied to it. So a wrong key is found where it stands: in a file, or on the command line.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException, OverrideParseException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import InterpolationResolutionError, OmegaConfBaseException

from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.recipe.catalogue import PRIMARY, Catalogue, is_name
from anfbuild.recipe.choices import check_choice, check_defaults, has_components, is_group
from anfbuild.recipe.components import (
    KEY,
    Component,
    begin,
    chosen_files,
    components,
    is_choice,
    is_of_components,
    told_of,
)
from anfbuild.recipe.document import refuse_code
from anfbuild.recipe.hints import nearest
from anfbuild.recipe.places import COMMAND_LINE, Places
from anfbuild.recipe.problems import reference_problem, unknown_key, value_problem
from anfbuild.recipe.recipe import Recipe
from anfbuild.recipe.rules import ALL, Fault, faults
from anfbuild.recipe.schema import COMPONENT, MISSING, Config
from anfbuild.recipe.shorthand import CHOOSABLE

_NEEDED = {field.name for field in dataclasses.fields(Config)} | {"task.kind"}
"""Keys that no recipe is without, and that OmegaConf would remove all the same."""

_INSTANCE = re.compile(r"(\+{0,2}goal=)(\w+\[\w+\])")
"""A goal that is a step of one component, which Hydra's grammar would have in quotes within those of the shell."""

_SHARED = tuple(key for key in ALL if key != KEY and (key not in COMPONENT or key == "gates"))
"""What stands at the top of a recipe of several components, for all of them."""


def compose(overrides: Sequence[str], project: Path) -> Recipe:
    """Compose the recipe that `+recipe=NAME` chooses, with all other overrides applied.

    `project` is the user's folder; its `conf/` and `recipes/` come before ours. Raises RecipeError with the place.
    """
    catalogue = Catalogue(project.resolve())
    parsed = parse(overrides)
    for override in parsed:
        if is_hydra(override):
            raise RecipeError(
                f"{override.input_line!r} is an option of Hydra, and a single build has none",
                where=COMMAND_LINE,
                remedy="Remove it; hydra/launcher and hydra/sweeper are for a sweep (-m).",
            )
    chosen = _recipe(parsed, catalogue)
    for override in parsed:
        _refuse_sweep(override)
        if is_group(override):
            check_choice(override, catalogue)
    check_defaults(f"recipe/{chosen}", catalogue)

    groups = [item for item in parsed if is_group(item)]
    values = [item for item in parsed if item not in groups and item.key_or_group != "recipe"]
    shown = [item for item in values if not is_choice(item)]
    places = Places(catalogue, [f"+recipe='{chosen}'", *(item.input_line or "" for item in groups)], shown)
    own = [item for item in values if is_of_components(item)]
    composed, task = _composed(catalogue, places.group_overrides, chosen, several=bool(own))
    parts = components(composed, own, places, catalogue)
    config = _validated(composed, places.of)
    for override in values:
        if override not in own:
            _apply(override, config)
    config.name = chosen.replace("/", ".")
    if parts:
        return _of_several(parts, config, task, places, catalogue)
    plain = _plain(config, places.of)
    _check_task(plain["task"], task, places.of)
    _refuse_faults(faults(plain), places.of)
    return Recipe(name=plain["name"], config=plain, place=places.of)


def _of_several(
    parts: Sequence[Component], config: DictConfig, task: list[str], places: Places, catalogue: Catalogue
) -> Recipe:
    """The recipe of `parts`; `config` is its top level, `task` are the options that the task chosen there has."""
    places.choices = [override for part in parts for override in part.choice_overrides]
    bases = chosen_files(parts, catalogue)
    found = {}
    for part in parts:
        place = functools.partial(places.of_component, part.name)
        merged = begin(part, config, bases, places, catalogue)
        with told_of(part.name):
            whole = _validated(merged, place)
            for override in part.overrides:
                _apply(override, whole)
            plain = _plain(whole, place)
            document = catalogue.document(f"task/{part.choices['task']}") if "task" in part.choices else None
            _check_task(plain["task"], list(document.data) if document else task, place)
        found[part.name] = {key: plain[key] for key in COMPONENT}

    def place_of(key: str) -> str:
        head, _, inside = key.partition(".")
        name, _, rest = inside.partition(".")
        return places.of_component(name, rest) if head == KEY and name in found and rest else places.of(key)

    top = {**_top(config, places.of), KEY: found}
    _refuse_faults(faults(top, _SHARED), place_of)
    for name, own in found.items():
        _refuse_faults(faults(own, COMPONENT, f"{KEY}.{name}"), place_of)
    return Recipe(name=top["name"], config=top, place=place_of)


def _top(config: DictConfig, place: Callable[[str], str]) -> dict[str, Any]:
    """The top level of several components: what they share, and of the rest what they began with, as it was written."""
    began = OmegaConf.to_container(config, resolve=False)
    assert isinstance(began, dict)
    shared = config.copy()
    for key in COMPONENT:
        if key not in _SHARED:
            shared[key] = OmegaConf.structured(Config)._get_node(key)
    plain = _plain(shared, place)
    return {str(key): plain[str(key)] if key in _SHARED else value for key, value in began.items()}


def _refuse_faults(found: Iterable[Fault], place: Callable[[str], str]) -> None:
    for fault in found:
        raise RecipeError(fault.what, where=place(fault.key), choices=fault.choices, remedy=fault.remedy)


def parse(overrides: Sequence[str], loader: ConfigLoaderImpl | None = None) -> list[Override]:
    """Read Hydra overrides. Raises RecipeError: bad syntax, or a value that is code. `glob()` needs the `loader`."""
    for text in overrides:
        key, _, _ = text.partition("=")
        refuse_code(text, COMMAND_LINE)
        refuse_code(key.rpartition(".")[2].lstrip("+~"), COMMAND_LINE, is_key=True)
    parser = OverridesParser.create(config_loader=loader)
    try:
        return parser.parse_overrides([_INSTANCE.sub(r"\1'\2'", text) for text in overrides])
    except RecursionError as error:
        raise RecipeError("an override is nested too deep", where=COMMAND_LINE, remedy="Remove brackets.") from error
    except ValueError as error:  # Python's own, of a number of thousands of digits
        raise RecipeError(f"an override cannot be read: {error}", where=COMMAND_LINE) from error
    except OverrideParseException as error:
        raise RecipeError(
            f"cannot read the override {error.override!r}",
            where=COMMAND_LINE,
            remedy="Write KEY=VALUE, +KEY=VALUE to add, ~KEY to remove; quote what the shell would eat: 'a=[1,2]'. "
            "Text with letters beyond ASCII or with signs needs quotes of its own: 'KEY=\"ä (1)\"'.",
        ) from error


def is_hydra(override: Override) -> bool:
    """Whether an override is for Hydra itself, however it is spelt: `hydra.x`, `hydra/x`, `hydra`, `x@hydra`."""
    keys = (override.key_or_group, override.package or "")
    return any(re.split(r"[./@:]", key)[0] == "hydra" for key in keys)


def _refuse_sweep(override: Override) -> None:
    if override.is_sweep_override():
        raise RecipeError(
            f"{override.input_line!r} gives several values to a single build",
            where=COMMAND_LINE,
            remedy="Add -m to build each of them, or write a list as KEY=[A,B].",
        )


def _recipe(parsed: Sequence[Override], catalogue: Catalogue) -> str:
    given = [override for override in parsed if override.key_or_group == "recipe"]
    if not given:
        near = [item.key_or_group for item in parsed if did_you_mean(item.key_or_group, ["recipe"])]
        what = f"no recipe is chosen; did you mean '+recipe' by {near[0]!r}?" if near else "no recipe is chosen"
        choices = catalogue.recipes()
        raise RecipeError(what, where=COMMAND_LINE, choices=choices, remedy="Choose one with +recipe=NAME.")
    override = given[0]
    if len(given) > 1 or override.is_sweep_override() or isinstance(override.value(), list | dict):
        raise RecipeError(
            "exactly one recipe is built at a time",
            where=COMMAND_LINE,
            remedy="Sweep over several with -m +recipe=A,B.",
        )
    # The text, not its value: `123`, `null` and `1e3` are names of files.
    value = (override.input_line or "").partition("=")[2].strip()
    if value[:1] in ("'", '"') and value[:1] == value[-1:]:
        value = value[1:-1]
    if not override.is_add() or override.package is not None:
        raise RecipeError(
            f"{override.input_line!r} does not choose a recipe", where=COMMAND_LINE, remedy=f"Write +recipe={value}."
        )
    names = catalogue.recipes()
    if not is_name(value):
        raise RecipeError(
            f"there is no recipe {value!r}: a name holds letters from A to Z, digits, '_' and '-', in folders parted "
            "by '/'",
            where=COMMAND_LINE,
            choices=names,
            remedy=nearest(value, names, "Rename the file."),
        )
    if value not in names:
        raise RecipeError(
            f"there is no recipe {value!r}",
            where=COMMAND_LINE,
            choices=names,
            remedy=nearest(value, names, "Recipes are the YAML files below recipes/."),
        )
    return value


def _composed(
    catalogue: Catalogue, overrides: list[str], chosen: str, *, several: bool
) -> tuple[DictConfig, list[str]]:
    """The config as Hydra merges it from files, and the options that the chosen task has.

    Of a recipe of several components, the top level may leave a choice to each of them: that is added to `overrides`.
    """
    try:
        config = catalogue.loader.load_configuration(PRIMARY, overrides, RunMode.RUN)
    except (HydraException, ValueError, AssertionError) as error:
        group = re.match(r"You must specify '(\w+)'", str(error))
        if group and group[1] in CHOOSABLE and (several or has_components(f"recipe/{chosen}", catalogue)):
            overrides.append(f"~{group[1]}")
            return _composed(catalogue, overrides, chosen, several=several)
        if group:
            raise RecipeError(
                f"no {group[1]} is chosen",
                where=catalogue.shown(f"recipe/{chosen}"),
                choices=catalogue.choices(group[1]),
                remedy=f"Add `- override /{group[1]}: CHOICE` to its defaults list.",
            ) from error
        # What check_choice and check_defaults let pass: odd defaults lists in group files, Hydra's own options.
        first = " ".join(str(error).partition("\nConfig search path")[0].split())
        raise RecipeError(f"the recipe {chosen!r} does not compose: {first}") from error
    task = catalogue.document(f"task/{config.hydra.runtime.choices.get('task')}")
    OmegaConf.set_struct(config, False)
    del config["hydra"]
    return config, list(task.data) if task else []


def _validated(composed: DictConfig, place: Callable[[str], str]) -> DictConfig:
    if "name" in composed:
        raise RecipeError("a recipe is named by its file", where=place("name"), remedy="Remove the key 'name'.")
    schema = OmegaConf.structured(Config)
    try:
        merged = OmegaConf.merge(schema, composed)
    except OmegaConfBaseException as error:
        raise value_problem(error, schema, place) from error
    assert isinstance(merged, DictConfig)
    _keep_missing(composed, merged)
    OmegaConf.set_struct(merged, True)
    return merged


def _keep_missing(composed: DictConfig, merged: DictConfig) -> None:
    """A `???` in a file means "must be given", also where the schema has a default, which merging prefers."""
    for key in map(str, composed):
        if OmegaConf.is_missing(composed, key):
            merged[key] = MISSING
        elif not OmegaConf.is_interpolation(composed, key) and isinstance(composed[key], DictConfig):
            _keep_missing(composed[key], merged[key])


def _apply(override: Override, config: DictConfig) -> None:
    if override.is_delete() and override.key_or_group in _NEEDED:
        raise RecipeError(
            f"{override.key_or_group!r} cannot be removed: every recipe has it",
            where=COMMAND_LINE,
            remedy=f"Give it another value with {override.key_or_group}=VALUE.",
        )
    if override.key_or_group == "name":
        raise RecipeError("a recipe is named by its file", where=COMMAND_LINE, remedy="Copy the recipe to rename it.")
    try:
        if override.is_add() or override.is_force_add():
            _add(override.key_or_group, override.value(), config)
        else:
            ConfigLoaderImpl._apply_overrides_to_config([override], config)
    except (HydraException, OmegaConfBaseException) as error:
        cause = error if isinstance(error, OmegaConfBaseException) else error.__cause__
        if isinstance(cause, OmegaConfBaseException):
            raise value_problem(cause, config, lambda _key: COMMAND_LINE, override.key_or_group) from error
        raise unknown_key(override.key_or_group, config, COMMAND_LINE, str(error).splitlines()[0]) from error


def _add(key: str, value: object, config: DictConfig) -> None:
    """What Hydra's `+` does, but under the schema, which forcing a key into the config would bypass."""
    *above, last = key.split(".")
    nested: dict[str, object] = {last: value}
    for part in reversed(above):
        nested = {part: nested}
    OmegaConf.set_struct(config, None)  # what the schema alone closes stays closed
    try:
        config.merge_with(OmegaConf.create(nested))
    finally:
        OmegaConf.set_struct(config, True)


def _plain(config: DictConfig, place: Callable[[str], str]) -> dict[str, Any]:
    try:
        OmegaConf.resolve(config)
    except InterpolationResolutionError as error:
        raise reference_problem(error, config, place) from error
    except OmegaConfBaseException as error:
        raise value_problem(error, config, place) from error
    plain = OmegaConf.to_container(config)
    assert isinstance(plain, dict)
    return {str(key): value for key, value in plain.items()}


def _check_task(task: object, known: list[str], place: Callable[[str], str]) -> None:
    """Options of a task are those in its file, since kinds of task may come from outside of this package."""
    if isinstance(task, dict) and "kind" not in task:
        raise RecipeError("'task.kind' has no value", where=place("task"), remedy="Write kind: KIND in its file.")
    for name, value in task.items() if isinstance(task, dict) else ():
        if name not in known:
            raise RecipeError(
                f"there is no option {name!r} of this task",
                where=place(f"task.{name}"),
                choices=known,
                remedy=nearest(name, known),
            )
        if isinstance(value, dict | list):
            raise RecipeError(f"'task.{name}' holds one value, not {value!r}", where=place(f"task.{name}"))
