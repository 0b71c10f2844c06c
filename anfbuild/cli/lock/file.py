"""The file of a lock, read and written: entries by target and scheme."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from anfbuild.cli.beside import written
from anfbuild.cli.tolerance import is_number
from anfbuild.errors import RecipeError
from anfbuild.recipe import Recipe
from anfbuild.recipe.document import Document, read
from anfbuild.recipe.files import LOCK_SUFFIX, beside
from anfbuild.report.words import one_or_all

FORMAT = 1
_MOST_BYTES = 8_000_000
"""Of a lock file: far more than any has."""
_HEADER = (
    "# Written by `anfbuild +recipe=NAME --lock`; `--locked` holds a build to it. Commit it; write it again to change "
    "it.\n"
)
_REWRITE = "Restore the file, or remove it and build with --lock."


@dataclasses.dataclass(frozen=True)
class Entry:
    """One target and scheme of a recipe."""

    config: Mapping[str, Any]
    """Config path -> value, of all that a step of the build reads; of outside files {suffix, sha256}."""
    tools: Mapping[str, str]
    """Distribution or part of the version matrix -> version."""
    cpu_class: str
    source: Mapping[str, str]
    """`files`: SHA-256 of the listing of what fetch left; `model`: SHA-256 of the source model. Of several
    components below the name of each: `landmark/files`."""
    data: Mapping[str, str]
    """Folder of the data set -> SHA-256 of its listing; of several components below the name of each."""
    outputs: Mapping[str, str]
    """Exported file -> SHA-256."""
    figures: Mapping[str, float]
    """JSON pointer into results.json -> number."""
    tolerance: float


@dataclasses.dataclass(frozen=True)
class Lock:
    """The lock of one recipe, as read; nothing is in it where there is no file yet."""

    path: Path
    recipe: str
    entries: Mapping[str, Entry]
    document: Document | None = None

    def place(self, key: str = "") -> str:
        """The file, and the line of `key` where that is known."""
        return str(self.path) if self.document is None else self.document.place(key)


def lock_path(recipe: str, project: Path) -> Path:
    """Where the lock of a recipe of this name (`vision.det`) lies in a project."""
    return beside(recipe, LOCK_SUFFIX, project)


def entry_name(recipe: Recipe) -> str:
    """The target and scheme of a recipe, as the lock calls them: `sm8650/int8_per_channel`, `sm8650/int8+a16w8`."""
    schemes = [config["quantization"]["scheme"] for config in (recipe.components or {"main": recipe.config}).values()]
    return f"{recipe.config['target']['soc']}/{one_or_all(schemes)}"


def load(recipe: str, project: Path) -> Lock:
    """The lock of `recipe`, empty if there is none. Raises RecipeError for a file that is no lock, with the line."""
    path = lock_path(recipe, project)
    if not path.exists():
        return Lock(path, recipe, {})
    shown = path.relative_to(project).as_posix()
    if path.is_file() and path.stat().st_size > _MOST_BYTES:
        raise RecipeError(f"a lock of more than {_MOST_BYTES:,} bytes", where=shown, remedy=_REWRITE)
    document = read(path, shown)
    told = document.data
    _expect(document, "", told, {"format": int, "recipe": str, "entries": dict})
    if told["format"] != FORMAT:
        raise RecipeError(
            f"the lock has format {told['format']}, this anfbuild knows {FORMAT}",
            where=document.place("format"),
            remedy=_REWRITE,
        )
    if told["recipe"] != recipe:
        raise RecipeError(f"this is the lock of recipe {told['recipe']!r}", where=document.place("recipe"))
    _expect_json(document, "", told)
    entries = {name: _entry(document, f"entries.{name}", value) for name, value in told["entries"].items()}
    return Lock(path, recipe, entries, document)


def save(lock: Lock, name: str, entry: Entry) -> None:
    """Write `lock` with `entry` under `name`, the others as they are. Raises StepError where that cannot be."""
    entries = {**lock.entries, name: entry}
    document = {
        "format": FORMAT,
        "recipe": lock.recipe,
        "entries": {key: dataclasses.asdict(value) for key, value in entries.items()},
    }
    text = _HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=True, width=120, allow_unicode=True)
    with written(lock.path, "lock") as partial:
        partial.write_text(text, encoding="utf-8")


def _entry(document: Document, at: str, value: Any) -> Entry:
    kinds: dict[str, Any] = {
        "config": dict,
        "tools": dict,
        "cpu_class": str,
        "source": dict,
        "data": dict,
        "outputs": dict,
        "figures": dict,
        "tolerance": object,
    }
    _expect(document, at, value, kinds)
    for group in ("tools", "source", "data", "outputs"):
        _expect(document, f"{at}.{group}", value[group], dict.fromkeys(value[group], str))
    numbers = {
        "tolerance": value["tolerance"],
        **{f"figures.{key}": figure for key, figure in value["figures"].items()},
    }
    for key, number in numbers.items():
        if not is_number(number):
            raise _wrong(document, f"{at}.{key}", "a number", number)
    if value["tolerance"] < 0:
        raise _wrong(document, f"{at}.tolerance", "a number from 0", value["tolerance"])
    return Entry(**value)


def _expect_json(document: Document, at: str, value: Any) -> None:
    """Refuse what a lock never holds: a key that is no text, a number that is not finite."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise _wrong(document, f"{at}.{key}".lstrip("."), "a name in quotes", key)
            _expect_json(document, f"{at}.{key}".lstrip("."), item)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _expect_json(document, f"{at}[{index}]", item)
    elif isinstance(value, float) and not math.isfinite(value):
        raise _wrong(document, at, "a finite number", value)


def _expect(document: Document, at: str, value: Any, kinds: Mapping[str, type]) -> None:
    """Refuse what is not a mapping of exactly these keys to values of these kinds."""
    if not isinstance(value, dict):
        raise _wrong(document, at, "a mapping", value)
    if value.keys() != kinds.keys():
        raise RecipeError(
            f"{at or 'a lock'} has the keys {', '.join(map(str, value))}",
            where=document.place(at),
            choices=kinds,
            remedy=_REWRITE,
        )
    for key, kind in kinds.items():
        if kind is not object and type(value[key]) is not kind:
            raise _wrong(document, f"{at}.{key}".lstrip("."), f"of type {kind.__name__}", value[key])


def _wrong(document: Document, key: str, wanted: str, value: Any) -> RecipeError:
    return RecipeError(f"{key!r} is {shown(value)}, not {wanted}", where=document.place(key), remedy=_REWRITE)


class _Dumper(yaml.SafeDumper):
    """Writes what the reader of recipes reads back as it was, and no aliases."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # the signature of PyYAML
        return True


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Text that could be read as anything else is put in quotes."""
    plain = re.fullmatch(r"[A-Za-z_][\w./*-]*", text, re.ASCII) and text.lower() not in _WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
_Dumper.add_representer(str, _quoted)


def shown(value: Any) -> str:
    """A value as a message has it: not too long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"
