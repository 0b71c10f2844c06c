"""Errors as the build raises them, with the places that only the recipe knows."""

from __future__ import annotations

from pathlib import Path

from anfbuild.errors import AnfbuildError
from anfbuild.recipe import Recipe

_SOURCE = "fetch/model/"
"""Where steps find the source model: the user knows it by the recipe's words."""


def located(error: AnfbuildError, recipe: Recipe, component: str | None = None) -> AnfbuildError:
    """The same error, where a key of the recipe stands as its place with the file and line that gave the value, and the
    fetched model by the name that the recipe has for it. `component` is the one that it happened to."""
    where, what = error.where or "", error.what
    if component is not None and _is_key(f"components.{component}.{where}", recipe):
        where = f"components.{component}.{where}"
    if where.startswith(_SOURCE):
        name, comma, rest = where.removeprefix(_SOURCE).partition(", ")
        where = _source(recipe, component, name) + comma + rest
    elif _is_key(where, recipe):
        where = f"{recipe.place(where)} ({where})"
    if component is not None:
        what = f"component {component!r}: {what}"
    return type(error)(what, where=where or None, choices=error.choices, remedy=error.remedy)


def _is_key(where: str, recipe: Recipe) -> bool:
    """Whether `where` is `goal`, or reaches into a group of the config, or of a component, by one level at least."""
    head, _, rest = where.partition(".")
    if not rest:
        return head in recipe.config
    config = recipe.config
    if head == "components":
        name, _, rest = rest.partition(".")
        config = config[head].get(name, {})
        head, _, rest = rest.partition(".")
    above = config.get(head)
    return isinstance(above, dict) and rest.partition(".")[0] in above


def _source(recipe: Recipe, component: str | None, name: str) -> str:
    """The file `name` of the fetched model, with the place of the recipe that asks for it."""
    at = f"components.{component}.source" if component else "source"
    source = recipe.components[component]["source"] if component else recipe.config["source"]
    if source["path"] is not None:
        folder = Path(source["path"])
        shown = str(folder if source["file"] is None else folder / name)
        return f"{shown} ({recipe.place(f'{at}.path')})"
    if source["name"] is not None:
        return f"the installed model {source['name']!r} ({recipe.place(f'{at}.name')})"
    if source["repo"] is not None:
        return f"{source['file']} of {source['repo']} ({recipe.place(f'{at}.file')})"
    if source["url"] is not None:
        return f"{source['url']} ({recipe.place(f'{at}.url')})"
    return f"{source['file']} of {source['distribution']} ({recipe.place(f'{at}.file')})"
