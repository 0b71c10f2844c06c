"""The graph for doit's own commands: what dodo.py hands to doit."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from anfbuild.cli.build import make
from anfbuild.cli.console import visible, write
from anfbuild.cli.located import located
from anfbuild.engine.instances import part_of
from anfbuild.engine.run import Event
from anfbuild.errors import AnfbuildError
from anfbuild.recipe import compose


def tasks(words: Sequence[str], project: Path) -> list[dict[str, Any]]:
    """One doit task a step of the recipe that the overrides among `words`, doit's own command line, choose; last the
    goal, whose `clean` removes the recipe's exported builds and never touches the store.

    A recipe that cannot be built ends the process with the error's exit code.
    """
    try:
        recipe = compose([word for word in words if "=" in word and not word.startswith("-")], project)
    except AnfbuildError as error:
        _exit(error)

    def tell(event: Event) -> None:
        if event.kind == "failed" and isinstance(build.error, AnfbuildError):
            _stderr(located(build.error, recipe, part_of(event.step)))

    try:
        build = make(recipe, project, tell)
        made = build.tasks(recipe.config["goal"])
    except AnfbuildError as error:
        _exit(located(error, recipe))
    made[-1]["clean"] = [(_clean, [project / "artifacts" / "builds" / recipe.name])]
    return [{"basename": task.pop("name"), **task} for task in made]


def _clean(folder: Path) -> None:
    """Remove what was exported."""
    shutil.rmtree(folder, ignore_errors=True)


def _exit(error: AnfbuildError) -> NoReturn:
    _stderr(error)
    sys.exit(error.exit_code)


def _stderr(error: AnfbuildError) -> None:
    write(f"anfbuild: {visible(str(error))}\n", sys.stderr)
