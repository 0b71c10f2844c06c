"""With `goal=convert` or `goal=lint`: what lint finds in the source model, before anything is calibrated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.cli.disagreement import below
from anfbuild.engine.instances import part_of, step_of
from anfbuild.engine.run import Build

_STEP, _FILE = "lint", "lint.json"
_GOALS = ("convert", _STEP)


def linted(run: Build, goal: str, target: Path) -> dict[str, dict[str, Any]]:
    """File below `target` -> what lint found: of the recipe's model, or of each component's; nothing for another goal.

    Raises StepError and RecipeError as the step does.
    """
    found = {}
    for member in run.members(goal):
        if step_of(member) not in _GOALS:
            continue
        part = part_of(member)
        step, name = (f"{_STEP}[{part}]" if part else _STEP), f"{_STEP}/{below(part, _FILE)}"
        run.result(step)
        run.export(step, _FILE, target / name)
        document = json.loads((target / name).read_text(encoding="utf-8"))
        found[name] = {"component": part, **document}
    return found


def rows(documents: Sequence[Mapping[str, Any]], recipe: str) -> list[tuple[str, str, str]]:
    """(label, value, source) for the terminal: where the nodes would run, and each rule with how many nodes."""
    told = []
    for document in documents:
        whose = f"{document['component']}: " if document["component"] else ""
        units = Counter(node["unit"] for node in document["placement"])
        for_what = f"{document['target']}, {document['quantization']}"
        told.append(
            (f"{whose}nodes", f"{units['HTP']} on the HTP, {units['CPU']} on the CPU ({for_what})", "predicted")
        )
        rules = Counter((found["severity"], found["rule"]) for found in document["findings"])
        told += [
            (f"{whose}{severity}", f"{rule}, {count} time(s)", "predicted") for (severity, rule), count in rules.items()
        ]
    return [*told, ("findings", f"anfbuild lint +recipe={recipe} tells where, and what to do", "")] if told else []
