"""`anfbuild cache status|verify|gc|pin|unpin|push|pull`: look after the store. The engine does it; here is what is said
of it, and in `cli.transfer` of what goes to a remote and comes from it."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import make, store_root
from anfbuild.cli.console import Console, write
from anfbuild.cli.single import single_recipe
from anfbuild.cli.transfer import pull, push
from anfbuild.engine import pins
from anfbuild.engine.gc import Cleared, clear
from anfbuild.engine.limits import parse_age, parse_size, show_size
from anfbuild.engine.plan import Limits
from anfbuild.engine.run import Build
from anfbuild.engine.status import Row, show_time, status
from anfbuild.engine.store import Store
from anfbuild.engine.survey import Entry
from anfbuild.engine.verify import Damage, verify
from anfbuild.errors import RecipeError, StepError, did_you_mean

Answer = tuple[int, dict[str, Any]]

_GRACE = "1d"


@dataclasses.dataclass(frozen=True)
class _Word:
    """What the word after `cache` does, and what else may stand on its command line."""

    run: Callable[[Arguments, Path, Console], Answer]
    options: Sequence[str] = ()
    recipe: bool = False
    """Whether it takes a recipe with its overrides."""


def run(arguments: Arguments, project: Path, console: Console) -> Answer:
    """Raises RecipeError: an unknown word, or what does not belong to it; StepError: the store cannot be used."""
    name = arguments.words[0]
    if name not in _WORDS:
        raise RecipeError(
            f"'cache' cannot {name!r}",
            where="command line",
            choices=_WORDS,
            remedy=f"{did_you_mean(name, _WORDS)}Write anfbuild cache {'|'.join(_WORDS)}.",
        )
    word = _WORDS[name]
    for option in arguments.options:
        if option not in word.options:
            raise RecipeError(
                f"'cache {name}' takes no {option}", where="command line", choices=word.options, remedy="Leave it out."
            )
    if arguments.overrides and not word.recipe:
        raise RecipeError(
            f"'cache {name}' takes no {arguments.overrides[0]!r}",
            where="command line",
            remedy="It is about the whole store: leave out recipe and overrides.",
        )
    try:
        return word.run(arguments, project, console)
    except OSError as error:
        raise StepError(
            f"the store cannot be used: {error.strerror or error}",
            where=str(error.filename or store_root(project)),
            remedy="Check the folder's rights, or set ANFBUILD_CACHE to another folder.",
        ) from error


def _status(_arguments: Arguments, project: Path, console: Console) -> Answer:
    store = Store(store_root(project))
    found = status(store)
    console.print(f"store: {store.root}")
    console.table(
        [
            ["entries", str(found.entries), ""],
            ["blobs", str(found.blobs), show_size(found.blob_bytes)],
            ["quarantine", str(found.quarantine), show_size(found.quarantine_bytes)],
            ["tmp", str(found.tmp), show_size(found.tmp_bytes)],
            ["pins", str(found.pins), f"{found.pinned} entries"],
            ["private entries", str(found.private), ""],
            ["bytes elsewhere", str(found.elsewhere), "entries"],
            ["last use", "never" if found.used is None else show_time(found.used), ""],
        ]
    )
    for heading, rows in (("recipe", found.recipes), ("step", found.steps)):
        if rows:
            console.print()
            console.table(
                [_row(row) for row in rows],
                headings=(heading, "entries", "size", "last use", "pinned", "private", "elsewhere"),
            )
    if found.entries:
        console.print("\nA blob that several rows share counts in each of them, and once in the total.")
    return 0, {"exit_code": 0, "store": str(store.root), **found.to_json()}


def _row(row: Row) -> list[str]:
    counts = [str(count) for count in (row.pinned, row.private, row.elsewhere)]
    return [row.name, str(row.entries), show_size(row.bytes), show_time(row.used), *counts]


def _verify(_arguments: Arguments, project: Path, console: Console) -> Answer:
    store = Store(store_root(project))
    found = verify(store, _show_progress if sys.stderr.isatty() else lambda _done, _all: None)
    for damage in found.damage:
        console.print(f"{damage.kind} {damage.path}: {damage.why}; {_fate(damage)}")
    for note in found.notes:
        console.print(f"note: {note}: anfbuild cache gc --delete clears what is old enough")
    console.print(
        f"{found.entries} entries, {found.blobs} blobs, {show_size(found.bytes)}: {len(found.damage)} damaged"
    )
    if any(damage.quarantined for damage in found.damage):
        console.print("The next build makes again what was put aside and is needed.")
    code = 1 if found.damage else 0
    document = {
        "exit_code": code,
        "store": str(store.root),
        "entries": found.entries,
        "blobs": found.blobs,
        "bytes": found.bytes,
        "damage": [{**dataclasses.asdict(damage), "path": str(damage.path)} for damage in found.damage],
        "notes": list(found.notes),
    }
    return code, document


def _fate(damage: Damage) -> str:
    if damage.quarantined:
        return "put aside"
    if damage.kind == "pin":
        return "pin the build again, or remove this file"
    if damage.kind == "folder":
        return "remove it"
    return "it cannot be put aside: the store cannot be written"


def _show_progress(done: int, of: int) -> None:
    if done == of or done % 100 == 0:
        write(f"\r{done} of {of} blobs" + ("\n" if done == of else ""), sys.stderr)


def _gc(arguments: Arguments, project: Path, console: Console) -> Answer:
    options = arguments.options
    size, age = options.get("--max-size"), options.get("--older-than")
    limits = Limits(
        max_size=None if size is None else parse_size(size, "--max-size"),
        older_than=None if age is None else parse_age(age, "--older-than"),
        grace=parse_age(options.get("--grace", _GRACE), "--grace"),
    )
    delete = "--delete" in options
    store = Store(store_root(project))
    cleared = clear(store, limits, delete=delete)
    rows = _gone(cleared)
    if rows:
        cells = [[row["recipe"], row["step"], str(row["entries"]), show_size(row["bytes"])] for row in rows]
        console.table(cells, headings=("recipe", "step", "entries", "size"))
        console.print("A blob that several rows share counts in each of them, and once in what follows.")
    litter = {name: len(paths) for name, paths in vars(cleared.litter).items()}
    counts = {"entries": len(cleared.plan.entries), "blobs": len(cleared.plan.blobs), **litter}
    told = ", ".join(f"{name} {count}" for name, count in counts.items())
    freed = cleared.plan.freed + cleared.litter_bytes
    console.print(f"{'removed' if delete else 'would go'}: {told}; {show_size(freed)}")
    console.print(f"blobs that stay: {show_size(cleared.plan.remaining)}")
    within = limits.max_size is None or cleared.plan.remaining <= limits.max_size
    if not within:
        console.print("That is more than --max-size: all of it is pinned, or was used within --grace.")
    if not delete:
        console.print("Nothing was removed: --delete does it.")
    document = {
        "exit_code": 0,
        "store": str(store.root),
        "deleted": delete,
        "rows": rows,
        **counts,
        "freed_bytes": freed,
        "remaining_bytes": cleared.plan.remaining,
        "within_max_size": within,
    }
    return 0, document


def _gone(cleared: Cleared) -> list[dict[str, Any]]:
    """What goes by recipe and step, in bytes of the blobs that go."""
    sizes = {blob.sha: blob.size for blob in cleared.plan.blobs}
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in cleared.plan.entries:
        for recipe in entry.recipes:
            groups.setdefault((recipe, entry.step), []).append(entry)
    return [
        {
            "recipe": recipe,
            "step": step,
            "entries": len(group),
            "bytes": sum(sizes.get(sha, 0) for sha in {sha for entry in group for sha in entry.blobs}),
        }
        for (recipe, step), group in sorted(groups.items())
    ]


def _pin(arguments: Arguments, project: Path, console: Console) -> Answer:
    build, goal = _build(arguments, project)
    key = build.goal_key(goal)
    if key is None or not all(map(build.is_up_to_date, build.members(goal))):
        raise build.error or RecipeError(
            "this build is not in the store, or not all of it",
            where=build.name,
            remedy=f"Build first: anfbuild {' '.join(arguments.overrides)}",
        )
    steps = {step: build.result(step).key for step in build.ancestors(goal)}
    path = pins.pin(Store(store_root(project)), build.name, goal, key, steps)
    console.print(f"pinned: {build.name} {key[:12]}, {len(steps)} steps")
    return 0, {"exit_code": 0, "recipe": build.name, "goal": goal, "key": key, "pin": str(path)}


def _unpin(arguments: Arguments, project: Path, console: Console) -> Answer:
    build, goal = _build(arguments, project)
    key = build.goal_key(goal)
    path = pins.unpin(Store(store_root(project)), build.name, key)
    console.print(f"unpinned: {build.name} {path.stem[:12]}")
    return 0, {"exit_code": 0, "recipe": build.name, "goal": goal, "key": key, "pin": str(path)}


def _build(arguments: Arguments, project: Path) -> tuple[Build, str]:
    """The recipe's graph, nothing run, and its goal."""
    recipe = single_recipe(arguments, project)
    return make(recipe, project, lambda _event: None), str(recipe.config["goal"])


_WORDS: Mapping[str, _Word] = {
    "status": _Word(_status),
    "verify": _Word(_verify),
    "gc": _Word(_gc, options=("--max-size", "--older-than", "--grace", "--delete")),
    "pin": _Word(_pin, recipe=True),
    "unpin": _Word(_unpin, recipe=True),
    "push": _Word(push, options=("--remote",), recipe=True),
    "pull": _Word(pull, options=("--remote",), recipe=True),
}
