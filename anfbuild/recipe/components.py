"""Recipes of several components: what each of them is, over what the recipe says for all.

A component begins with the recipe's top level. A file that it chooses of a group replaces what that group has there,
and the values that it gives refine the rest. Its gates are its own: those of the top level judge the whole.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence

from hydra.core.override_parser.types import Override
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from anfbuild.errors import RecipeError
from anfbuild.recipe.catalogue import Catalogue
from anfbuild.recipe.choices import check_value
from anfbuild.recipe.hints import nearest
from anfbuild.recipe.places import COMMAND_LINE, Places
from anfbuild.recipe.rules import ALL
from anfbuild.recipe.schema import COMPONENT
from anfbuild.recipe.shorthand import CHOICE, CHOOSABLE, spell_out

KEY = "components"

_NAME = re.compile(r"(?!(?:main|con|prn|aux|nul|com\d|lpt\d)$)[a-z][a-z0-9_]{0,62}")
"""It becomes a folder of the package on any system, and a part of keys. `main` is what the only model is called."""


@dataclasses.dataclass(frozen=True)
class Component:
    """What the recipe and the command line say of one component."""

    name: str
    choices: Mapping[str, str]
    """Group -> the file that was chosen."""
    refined: DictConfig
    """The values given, as far as they come from files."""
    overrides: Sequence[Override]
    """Those of the command line, with keys as the component has them."""

    @property
    def choice_overrides(self) -> list[str]:
        """The choices as Hydra takes them."""
        return [f"+{group}@{KEY}.{self.name}.{group}={choice}" for group, choice in self.choices.items()]


def is_of_components(override: Override) -> bool:
    """Whether an override says something of components, but for `~components`, which nothing can mean."""
    key = override.key_or_group
    return key.startswith(f"{KEY}.") or (key == KEY and not override.is_delete())


def is_choice(override: Override) -> bool:
    """Whether an override chooses a file for a group of a component: `components.landmark.quantization=int8`."""
    parts = override.key_or_group.split(".")
    if parts[0] != KEY or len(parts) not in (3, 4) or parts[2] not in CHOOSABLE or override.is_delete():
        return False
    return parts[3] == CHOICE if len(parts) == 4 else not isinstance(override.value(), dict)


@contextlib.contextmanager
def told_of(name: str) -> Iterator[None]:
    """Let errors name the component."""
    try:
        yield
    except RecipeError as error:
        error.what = f"component {name!r}: {error.what}"
        raise


def components(
    composed: DictConfig, overrides: Sequence[Override], places: Places, catalogue: Catalogue
) -> list[Component]:
    """What a recipe's files have below `components`, which is taken out of `composed`, and the `overrides` of that.

    Raises RecipeError with the place: no mapping, a name that cannot be, a key that a component does not have, a choice
    that there is not.
    """
    given = composed.pop(KEY, None)
    raw = _mapping(OmegaConf.create({KEY: {} if given is None else given}), KEY, places.of(KEY))
    rest: list[tuple[str, Override]] = []
    for override in overrides:
        _apply(override, raw, rest, catalogue)
    return [_component(str(name), raw, rest, places, catalogue) for name in raw]


def chosen_files(components: Sequence[Component], catalogue: Catalogue) -> DictConfig:
    """Component -> group -> what the file says that it chose."""
    overrides = [override for component in components for override in component.choice_overrides]
    config = catalogue.loader.load_configuration(None, overrides, RunMode.RUN)
    OmegaConf.set_struct(config, False)
    found = config.get(KEY) or OmegaConf.create({})
    assert isinstance(found, DictConfig)
    return found


def begin(component: Component, top: DictConfig, bases: DictConfig, places: Places, catalogue: Catalogue) -> DictConfig:
    """What a component is, by the files: the recipe's `top` level, what it chose, what refines that.

    Raises RecipeError where neither says which file of a group it takes.
    """
    plain = OmegaConf.to_container(top, resolve=False)
    assert isinstance(plain, dict)
    for key in (KEY, "name", *component.choices):
        plain.pop(key, None)
    plain["gates"] = {}
    base = bases.get(component.name) or {}
    merged = OmegaConf.merge(OmegaConf.create(plain), base, component.refined)
    assert isinstance(merged, DictConfig)
    for group in CHOOSABLE:
        if f"~{group}" in places.group_overrides and group not in component.choices and group not in component.refined:
            raise RecipeError(
                f"component {component.name!r} has no {group}",
                where=places.of(f"{KEY}.{component.name}"),
                choices=catalogue.choices(group),
                remedy=f"Write `{group}: CHOICE` in it, or choose one for all in the defaults list of the recipe.",
            )
    return merged


def _apply(override: Override, raw: DictConfig, rest: list[tuple[str, Override]], catalogue: Catalogue) -> None:
    """Put into `raw` what adds, removes or chooses; what gives a value inside of a component goes to `rest`."""
    _, _, inside = override.key_or_group.partition(".")
    name, _, key = inside.partition(".")
    if name and name not in raw and not (override.is_add() and not key):
        raise RecipeError(
            f"there is no component {name!r}",
            where=COMMAND_LINE,
            choices=list(map(str, raw)),
            remedy=nearest(name, list(map(str, raw)), f"Add one with '+{KEY}.{name}={{source: CHOICE, ...}}'."),
        )
    if is_choice(override):
        group = key.partition(".")[0]
        with told_of(name):
            check_value(group, override.value(), catalogue.choices(group), COMMAND_LINE)
        raw.merge_with({name: {group: {CHOICE: override.value()}}})
    elif override.is_delete() and not key:
        raw.pop(name)
    elif key:
        rest.append((name, dataclasses.replace(override, key_or_group=key)))
    else:
        value = override.value()
        wrapped = OmegaConf.create({KEY: {name: value} if name else value})
        spell_out(wrapped)
        raw.merge_with(_mapping(wrapped, KEY, COMMAND_LINE))


def _mapping(config: DictConfig, key: str, where: str) -> DictConfig:
    value = config._get_node(key)
    if not isinstance(value, DictConfig) or value._is_none() or value._is_missing():
        raise RecipeError(
            f"{key!r} holds a mapping: the name of each component, and what it is",
            where=where,
            remedy=f"Write `{key}: {{NAME: {{source: CHOICE, ...}}}}`.",
        )
    return value


def _component(
    name: str, raw: DictConfig, rest: Sequence[tuple[str, Override]], places: Places, catalogue: Catalogue
) -> Component:
    at = f"{KEY}.{name}"
    if not _NAME.fullmatch(name):
        raise RecipeError(
            f"{name!r} is no name for a component: small letters, digits and '_'; not `main`, as a recipe's only "
            "model is called, nor the name of a device in Windows",
            where=places.of(at),
            remedy="Rename it.",
        )
    own = raw._get_node(name)
    if not isinstance(own, DictConfig) or own._is_none() or own._is_missing():
        raise RecipeError(f"{at!r} holds a mapping", where=places.of(at), choices=COMPONENT)
    for key in map(str, own):
        if key not in COMPONENT:
            raise _no_key(name, key, places.of(f"{at}.{key}"))
        if not isinstance(own._get_node(key), DictConfig):
            raise RecipeError(
                f"component {name!r}: {key!r} holds a mapping"
                + (f", or names a file of conf/{key}" if key in CHOOSABLE else ""),
                where=places.of(f"{at}.{key}"),
                choices=catalogue.choices(key),
            )
    choices = {}
    for group in CHOOSABLE:
        if group in own and CHOICE in own[group]:
            choices[group] = own[group].pop(CHOICE)
            with told_of(name):
                check_value(group, choices[group], catalogue.choices(group), places.of(f"{at}.{group}"))
    overrides = [override for of, override in rest if of == name]
    for override in overrides:
        if (key := re.split(r"[.\[]", override.key_or_group)[0]) not in COMPONENT:
            raise _no_key(name, key, COMMAND_LINE)
    return Component(name, choices, own, overrides)


def _no_key(name: str, key: str, where: str) -> RecipeError:
    shared = key in ALL
    return RecipeError(
        f"component {name!r}: there is no key {key!r} in a component",
        where=where,
        choices=COMPONENT,
        remedy="All components share it: it stands at the top of the recipe." if shared else nearest(key, COMPONENT),
    )
