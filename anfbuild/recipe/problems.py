"""OmegaConf's errors in our words: the key, the place, the keys or values that would be right."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator

from omegaconf import DictConfig, ListConfig, Node
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, InterpolationResolutionError, OmegaConfBaseException

from anfbuild.errors import RecipeError
from anfbuild.recipe import schema
from anfbuild.recipe.hints import nearest

_WORDS = (
    (r"could not be converted to Integer", "is not a whole number"),
    (r"could not be converted to Float", "is not a number"),
    (r"is not a valid bool", "is neither true nor false"),
    (r" of type '\w+'| \(type \w+\)", ""),
    (r".* is not a ListConfig, list or tuple\.?", "it holds a list"),
    (r"field .* is not Optional|Incompatible value 'None' for field of type .*", "null is no value for it"),
    (r".* does not support deletion", "every recipe has it, so that it cannot be removed"),
    (r"is incompatible with type hint .*", "is more than one value"),
)
"""OmegaConf's phrases -> ours."""


def value_problem(
    error: OmegaConfBaseException, config: DictConfig, place: Callable[[str], str], key: str | None = None
) -> RecipeError:
    """An error for what OmegaConf refused in `config`. `key` is the key that an override names, if it was one."""
    at = error.full_key or key or ""
    if isinstance(error, ConfigKeyError | ConfigAttributeError):
        kind = error.object_type
        if isinstance(kind, type) and dataclasses.is_dataclass(kind):
            above, _, last = at.rpartition(".")
            return _no_such_key(last, above, [field.name for field in dataclasses.fields(kind)], place(at))
        return unknown_key(key or at, config, place(at), _first_line(error))
    if mapping := re.search(r"is not a subclass of (\w+)", _first_line(error)):
        kind = getattr(schema, mapping[1])
        fields = [field.name for field in dataclasses.fields(kind)]
        return RecipeError(f"{at!r} holds a mapping", where=place(at), choices=fields)
    what = _first_line(error)
    for theirs, ours in _WORDS:
        what = re.sub(theirs, ours, what)
    return RecipeError(f"{at!r} cannot be set: {what[:1].lower()}{what[1:]}", where=place(at))


def unknown_key(key: str, config: DictConfig, where: str, otherwise: str) -> RecipeError:
    """An error for `key`, of which some part is not in `config`; `otherwise` is said if all of it is."""
    node: object = config
    above: list[str] = []
    for part in key.split("."):
        names = [str(name) for name in node] if isinstance(node, DictConfig) and not _empty(node) else []
        if not isinstance(node, DictConfig) or part not in names:
            return _no_such_key(part, ".".join(above), names, where)
        node = node._get_node(part)
        above.append(part)
    return RecipeError(otherwise, where=where)


def reference_problem(
    error: InterpolationResolutionError, config: DictConfig, place: Callable[[str], str]
) -> RecipeError:
    """An error for a `${reference}` in `config` that leads nowhere."""
    key = next(_dangling(config, ""), "")
    choices: list[str] = []
    remedy = None
    if target := re.search(r"Interpolation key '([\w.]+)' not found", _first_line(error)):
        problem = unknown_key(target[1], config, "", "")
        choices, remedy = problem.choices, problem.remedy
    return RecipeError(
        f"{key!r} refers to nothing: {_first_line(error)}", where=place(key), choices=choices, remedy=remedy
    )


def _dangling(node: DictConfig | ListConfig, key: str) -> Iterator[str]:
    """The keys of references that do not resolve."""
    if _empty(node):
        return
    children: list[tuple[str, object]]
    if isinstance(node, DictConfig):
        children = [(f"{key}.{name!s}" if key else str(name), node._get_node(name)) for name in node]
    else:
        children = [(f"{key}[{index}]", node._get_node(index)) for index in range(len(node))]
    for at, child in children:
        if isinstance(child, Node) and child._is_interpolation():
            try:
                child._dereference_node()
            except OmegaConfBaseException:
                yield at
        elif isinstance(child, DictConfig | ListConfig):
            yield from _dangling(child, at)


def _empty(node: DictConfig | ListConfig) -> bool:
    return node._is_none() or node._is_missing()


def _no_such_key(key: str, above: str, names: list[str], where: str) -> RecipeError:
    names = [name for name in names if above or name != "name"]  # a recipe is named by its file
    what = f"there is no key {key!r} in {above!r}" if above else f"there is no key {key!r}"
    return RecipeError(what, where=where, choices=names, remedy=nearest(key, names))


def _first_line(error: OmegaConfBaseException) -> str:
    return str(error.msg or error).splitlines()[0]
