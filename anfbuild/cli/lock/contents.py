"""What a build is made of, and what it made: the contents of a lock's entry."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from anfbuild import __version__
from anfbuild.cli.lock.file import Entry
from anfbuild.cli.tolerance import TOLERANCE, is_number
from anfbuild.engine.files import hash_regular
from anfbuild.engine.instances import part_of
from anfbuild.engine.key import PLUGIN
from anfbuild.engine.result import Result
from anfbuild.engine.run import Build
from anfbuild.engine.store import Store
from anfbuild.engine.why import flatten
from anfbuild.recipe import Recipe

_MADE = ("fetch", "dataset")
_SOURCE = {"files": "", "model": "model"}
_VERSIONS = "host.versions"
"""The version matrix as found: what is required is the recipe's, what is found is a tool."""


def asked(run: Build, recipe: Recipe) -> tuple[dict[str, Any], dict[str, str]]:
    """The config leaves and the tool versions that a build would be made of. Nothing is run."""
    config: dict[str, Any] = {"goal": recipe.config["goal"]}
    tools = {"anfbuild": __version__}
    for step in run.ancestors(recipe.config["goal"]):
        fields = run.own_fields(step)
        tools |= fields["tools"]
        for path, value in fields["config"].items():
            at = run.prefix(step) + path
            if path == _VERSIONS:
                config |= {f"versions.{part['part']}": part["required"] for part in value}
                tools |= {part["part"]: part["found"] or "absent" for part in value}
            elif path.endswith(PLUGIN):  # its code is the user's as data is; what it calls of anfbuild is a tool
                config |= flatten({at: {"files": value["files"]}})
                tools |= {str(value["distribution"]): str(value["version"]), **value["tools"]}
            else:
                config |= flatten({at: value})
    return config, tools


def made(run: Build, recipe: Recipe, folder: Path, files: Iterable[str], store: Store) -> Entry:
    """The entry of a build whose steps all have results, and whose `files` are in `folder`."""
    config, tools = asked(run, recipe)
    steps = run.ancestors(recipe.config["goal"])
    fetched, data = ({_of(step): run.result(step) for step in steps if run.step_name(step) == name} for name in _MADE)
    return Entry(
        config=config,
        tools=tools,
        cpu_class=_cpu_class(store, [run.result(step).key for step in steps]),
        source={of + name: result.digest(at) for of, result in fetched.items() for name, at in _SOURCE.items()},
        data={of + name: result.digest(name) for of, result in data.items() for name in _folders(result)},
        outputs={name: hash_regular(folder / name) for name in sorted(files)},
        figures=_figures(folder / "results.json"),
        tolerance=TOLERANCE,
    )


def _of(step: str) -> str:
    """What stands before names of a component: `landmark/`."""
    part = part_of(step)
    return f"{part}/" if part else ""


def _folders(result: Result) -> list[str]:
    return sorted({name.partition("/")[0] for name in result.files if "/" in name})


def _cpu_class(store: Store, keys: Iterable[str]) -> str:
    """The class that the results were made on; several are joined, since bytes can then be told from none of them."""
    classes = {str(store.meta(key).get("host", {}).get("cpu_class", "unknown")) for key in keys}
    return "+".join(sorted(classes))


def _figures(path: Path) -> dict[str, float]:
    document = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return dict(_numbers(document, ""))


def _numbers(value: Any, pointer: str) -> Iterable[tuple[str, float]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from _numbers(item, f"{pointer}/{key}")
    if is_number(value):
        yield pointer, value
