"""The lock file of a recipe, `recipes/NAME.lock.yaml`: what a build was made of and what came out, so that another one
can be held to it.

`--lock` writes the entry of the target and scheme that was built, `--locked` refuses a build that would leave it, and
fails one that came out different. Across two CPU feature classes (`anfbuild.compat.cpu`) figures are compared, by the
tolerance that the lock states; within one, bytes.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from anfbuild import __version__
from anfbuild.atomic import replacing
from anfbuild.cli.tolerance import TOLERANCE, close, is_number
from anfbuild.engine.key import PLUGIN, canonical, file_sha256
from anfbuild.engine.result import Result
from anfbuild.engine.run import Build
from anfbuild.engine.store import Store
from anfbuild.engine.why import flatten, is_content
from anfbuild.errors import GateError, RecipeError, StepError, VersionError
from anfbuild.recipe import Recipe
from anfbuild.recipe.document import Document, read
from anfbuild.recipe.files import LOCK_SUFFIX

FORMAT = 1
_MOST_BYTES = 8_000_000
"""Of a lock file: far more than any has."""
_MOST = 8
"""Differences that a message names."""
_HEADER = (
    "# Written by `anfbuild +recipe=NAME --lock`; `--locked` holds a build to it. Commit it; write it again to change "
    "it.\n"
)
_NOT_LOCKED = ("run.json", "job.json", "state.json")
"""Files of a build's folder that tell of the run."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """One target and scheme of a recipe."""

    config: Mapping[str, Any]
    """Config path -> value, of all that a step of the build reads; of outside files {suffix, sha256}."""
    tools: Mapping[str, str]
    """Distribution or part of the version matrix -> version."""
    cpu_class: str
    source: Mapping[str, str]
    """`files`: SHA-256 of the listing of what fetch left; `model`: SHA-256 of the source model."""
    data: Mapping[str, str]
    """Folder of the data set -> SHA-256 of its listing."""
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
    return project / "recipes" / f"{recipe.replace('.', '/')}{LOCK_SUFFIX}"


def entry_name(recipe: Recipe) -> str:
    """The target and scheme of a recipe, as the lock calls them: `sm8650/int8_per_channel`."""
    return f"{recipe.config['target']['soc']}/{recipe.config['quantization']['scheme']}"


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
    try:
        lock.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(lock.path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StepError(
            f"the lock cannot be written: {error.strerror or error}",
            where=str(lock.path),
            remedy="Make the folder writable and run again: all steps are finished and kept.",
        ) from error


# ---- what a build is made of, and what it made


def asked(run: Build, recipe: Recipe) -> tuple[dict[str, Any], dict[str, str]]:
    """The config leaves and the tool versions that a build would be made of. Nothing is run."""
    config: dict[str, Any] = {"goal": recipe.config["goal"]}
    tools = {"anfbuild": __version__}
    for step in run.ancestors(recipe.config["goal"]):
        fields = run.own_fields(step)
        tools |= fields["tools"]
        for path, value in fields["config"].items():
            if path == _VERSIONS:
                config |= {f"versions.{part['part']}": part["required"] for part in value}
                tools |= {part["part"]: part["found"] or "absent" for part in value}
            elif path.endswith(PLUGIN):  # its code is the user's as data is; what it calls of anfbuild is a tool
                config |= flatten({path: {"files": value["files"]}})
                tools |= {str(value["distribution"]): str(value["version"]), **value["tools"]}
            else:
                config |= flatten({path: value})
    return config, tools


_VERSIONS = "host.versions"
"""The version matrix as found: what is required is the recipe's, what is found is a tool."""


def made(run: Build, recipe: Recipe, folder: Path, store: Store) -> Entry:
    """The entry of a build whose steps all have results, and whose files are in `folder`."""
    config, tools = asked(run, recipe)
    steps = run.ancestors(recipe.config["goal"])
    fetched = run.result("fetch") if "fetch" in steps else None
    data = run.result("dataset") if "dataset" in steps else None
    return Entry(
        config=config,
        tools=tools,
        cpu_class=_cpu_class(store, [run.result(step).key for step in steps]),
        source={} if fetched is None else {"files": fetched.digest(), "model": fetched.digest("model")},
        data={} if data is None else {name: data.digest(name) for name in _folders(data)},
        outputs=_outputs(folder),
        figures=_figures(folder / "results.json"),
        tolerance=TOLERANCE,
    )


def _folders(result: Result) -> list[str]:
    return sorted({name.partition("/")[0] for name in result.files if "/" in name})


def _cpu_class(store: Store, keys: Iterable[str]) -> str:
    """The class that the results were made on; several are joined, since bytes can then be told from none of them."""
    classes = {str(store.meta(key).get("host", {}).get("cpu_class", "unknown")) for key in keys}
    return "+".join(sorted(classes))


def _outputs(folder: Path) -> dict[str, str]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in _NOT_LOCKED]
    return {path.relative_to(folder).as_posix(): file_sha256(path) for path in files}


def _figures(path: Path) -> dict[str, float]:
    document = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return dict(_numbers(document, ""))


def _numbers(value: Any, pointer: str) -> Iterable[tuple[str, float]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        yield from _numbers(item, f"{pointer}/{key}")
    if is_number(value):
        yield pointer, value


# ---- holding a build to it


def require(lock: Lock, recipe: Recipe) -> Entry:
    """The entry for the target and scheme of `recipe`. Raises RecipeError where there is none."""
    name = entry_name(recipe)
    if name not in lock.entries:
        what = f"the lock has no entry {name!r}" if lock.document else "there is no lock of this recipe"
        raise RecipeError(
            what, where=lock.place("entries"), choices=sorted(lock.entries), remedy="Build once with --lock."
        )
    return lock.entries[name]


def check_asked(entry: Entry, lock: Lock, run: Build, recipe: Recipe) -> None:
    """Refuse a build that would leave the lock: RecipeError for config or outside files, VersionError for tools."""
    config, tools = asked(run, recipe)
    left = _left(entry.config, config)
    if left:
        told = [f"{path} {_change(entry.config, config, path)} ({recipe.place(path)})" for path in left]
        raise RecipeError(
            f"{len(left)} value(s) leave the lock: {_several(told)}",
            where=lock.place(f"entries.{entry_name(recipe)}.config.{left[0]}"),
            remedy="Ask for what is locked, or accept the new values by building with --lock.",
        )
    other = _left(entry.tools, tools)
    if other:
        told = [f"{tool} locked {entry.tools.get(tool)}, found {tools.get(tool)}" for tool in other]
        raise VersionError(
            f"{len(other)} version(s) are not those of the lock: {_several(told)}",
            where=lock.place(f"entries.{entry_name(recipe)}.tools.{other[0]}"),
            remedy="Install the locked versions, or accept those that are here by building with --lock.",
        )


def check_made(entry: Entry, found: Entry, lock: Lock, name: str) -> None:
    """Raises GateError where what was built is not what the lock says."""
    where = lock.place(f"entries.{name}")
    if entry.source != found.source:
        raise GateError("the source model is not the locked one", where=where, remedy=_DIFFERENT)
    if entry.cpu_class != found.cpu_class:
        off = [
            f"{pointer} locked {value}, built {found.figures.get(pointer)}"
            for pointer, value in entry.figures.items()
            if pointer not in found.figures or not close(value, found.figures[pointer], entry.tolerance)
        ]
        if off:
            raise GateError(
                f"{len(off)} figure(s) differ by more than {entry.tolerance:g}: {_several(off)}",
                where=where,
                remedy=f"Locked on {entry.cpu_class}, built on {found.cpu_class}. {_DIFFERENT}",
            )
        return
    sets = [f"dataset/{part}" for part in _left(entry.data, found.data)]
    files = [*sets, *_left(entry.outputs, found.outputs)]
    if files:
        raise GateError(f"not the locked bytes: {_several(files)}", where=where, remedy=_DIFFERENT)


_DIFFERENT = "Look for what differs with `anfbuild reproduce`, or accept it by building with --lock."


def _left(locked: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names whose values differ, or that only one of the two has."""
    names = sorted(locked.keys() | now.keys())
    return [
        name for name in names if (name in locked) != (name in now) or canonical(locked[name]) != canonical(now[name])
    ]


def _change(locked: Mapping[str, Any], now: Mapping[str, Any], path: str) -> str:
    if is_content(locked.get(path)) and is_content(now.get(path)):
        return "holds other bytes than the locked ones"
    was, asks = (_short(values[path]) if path in values else "nothing" for values in (locked, now))
    return f"locked {was}, asked {asks}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _several(texts: list[str]) -> str:
    more = f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
    return "; ".join(texts[:_MOST]) + more


# ---- the file


_REWRITE = "Restore the file, or remove it and build with --lock."


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
    return Entry(**value)


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
    return RecipeError(f"{key!r} is {_short(value)}, not {wanted}", where=document.place(key), remedy=_REWRITE)


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
