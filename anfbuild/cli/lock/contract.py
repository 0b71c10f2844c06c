"""Holding a build to its lock: before it starts, and when it is done."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anfbuild.cli.lock.contents import asked
from anfbuild.cli.lock.file import Entry, Lock, entry_name, shown
from anfbuild.cli.tolerance import close
from anfbuild.engine.key import canonical
from anfbuild.engine.run import Build
from anfbuild.engine.why import is_content
from anfbuild.errors import GateError, RecipeError, VersionError
from anfbuild.recipe import Recipe

_MOST = 8
"""Differences that a message names."""
_DIFFERENT = "Look for what differs with `anfbuild reproduce`, or accept it by building with --lock."


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


def _left(locked: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The names whose values differ, or that only one of the two has."""
    names = sorted(locked.keys() | now.keys())
    return [
        name for name in names if (name in locked) != (name in now) or canonical(locked[name]) != canonical(now[name])
    ]


def _change(locked: Mapping[str, Any], now: Mapping[str, Any], path: str) -> str:
    if is_content(locked.get(path)) and is_content(now.get(path)):
        return "holds other bytes than the locked ones"
    was, asks = (shown(values[path]) if path in values else "nothing" for values in (locked, now))
    return f"locked {was}, asked {asks}"


def _several(texts: list[str]) -> str:
    more = f"; and {len(texts) - _MOST} more" if len(texts) > _MOST else ""
    return "; ".join(texts[:_MOST]) + more
