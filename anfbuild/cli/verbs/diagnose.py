"""`anfbuild diagnose [COMPONENT] +recipe=NAME`: each stage of a build against the one before, and where one departs.

What is missing of the build is built; gates are not judged. Exit code 3: a stage is past a bound that must hold.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import make, print_event
from anfbuild.cli.console import Console
from anfbuild.cli.disagreement import FILE, STEP
from anfbuild.cli.located import located
from anfbuild.cli.single import single_recipe
from anfbuild.engine.instances import part_of
from anfbuild.errors import AnfbuildError, GateError, RecipeError, did_you_mean
from anfbuild.recipe import Recipe

DEPARTS = GateError.exit_code
_HEADINGS = ("stage", "against", "output", "difference", "at the border", "bound", "")


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Diagnose the recipe's model, or each of its components, or the one named.

    Raises RecipeError, VersionError, and what a step raises.
    """
    recipe = single_recipe(arguments, project)
    step = _step(arguments, recipe)
    documents = _documents(recipe, step, project, console)
    for name, document in documents.items():
        _tell(name, document, console)
    code = 0 if all(document["healthy"] for document in documents.values()) else DEPARTS
    about = {"recipe": recipe.name, "exit_code": code}
    if recipe.components:
        return code, {**about, "components": documents}
    (document,) = documents.values()
    return code, {**about, **document}


def _step(arguments: Arguments, recipe: Recipe) -> str:
    if not arguments.words:
        return STEP
    (component,) = arguments.words
    if component not in recipe.components:
        raise RecipeError(
            f"the recipe has no component {component!r}",
            where="command line",
            choices=sorted(recipe.components),
            remedy=f"{did_you_mean(component, recipe.components)}Without a component, all are diagnosed.",
        )
    return f"{STEP}[{component}]"


def _documents(recipe: Recipe, step: str, project: Path, console: Console) -> dict[str | None, dict[str, Any]]:
    """Component (None: the only model) -> its diagnosis."""
    build = make(recipe, project, lambda event: print_event(event, console))
    found: dict[str | None, dict[str, Any]] = {}
    try:
        if not build.run(step):
            assert isinstance(build.error, AnfbuildError)
            raise build.error
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / FILE
            for member in build.members(step):
                build.export(member, FILE, file)
                found[part_of(member)] = json.loads(file.read_text(encoding="utf-8"))
    except AnfbuildError as error:
        failed = next((event.step for event in build.events if event.kind == "failed"), "")
        raise located(error, recipe, part_of(failed)) from error
    finally:
        build.close()
    return found


def _tell(name: str | None, document: Mapping[str, Any], console: Console) -> None:
    from anfbuild.diagnosis import stage_sentences

    console.print("" if name is None else f"\n{name}")
    rows = [row for stage in document["stages"] for row in _rows(stage)]
    console.table(rows, headings=_HEADINGS)
    for stage in document["stages"]:
        if stage["departs"] is not None:
            for sentence in ("", *stage_sentences(stage)):
                console.print(sentence)


def _rows(stage: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """A row an output, or one that says why there is none."""
    from anfbuild.diagnosis import share

    if stage["passed"] is None:
        return [(stage["stage"], stage["against"], "", "", "", "", f"not compared: {stage['reason']}")]
    figure, limit = stage["bound"]["figure"], stage["bound"]["limit"]
    past = "DEPARTS" if stage["hard"] else "past the bound, a warning"
    return [
        (
            stage["stage"],
            stage["against"],
            out["tensor"],
            f"{share(out[figure])} {figure}",
            "" if out["border"] is None else share(out["border"][figure]),
            share(limit),
            "holds" if out["passed"] else past,
        )
        for out in stage["outputs"]
    ]
