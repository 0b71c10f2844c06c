"""The one recipe that a verb is about."""

from __future__ import annotations

from pathlib import Path

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import store_root
from anfbuild.errors import RecipeError
from anfbuild.recipe import Recipe, compose


def single_recipe(arguments: Arguments, project: Path) -> Recipe:
    """Compose the recipe of a verb's command line. Raises RecipeError, for a sweep too."""
    if arguments.multirun:
        raise RecipeError(
            f"{arguments.verb!r} is about one recipe and takes no -m", where="command line", remedy="Remove -m."
        )
    return compose(arguments.overrides, project, store_root(project) / "memo" / "recipes")
