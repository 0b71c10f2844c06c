"""`anfbuild cache push` and `cache pull`: what a remote lacks goes there, what a recipe's build needs comes here.

Both are asked for, so that here a remote that fails is an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import make, store_root
from anfbuild.cli.console import Console
from anfbuild.cli.remotes import settings, warn
from anfbuild.engine.entry import parse_entry
from anfbuild.engine.files import read_regular
from anfbuild.engine.remote.connect import connect
from anfbuild.engine.remote.remote import Remote, RemoteError
from anfbuild.engine.remote.settings import CHOICES, URL, Settings
from anfbuild.engine.remote.shared import Shared
from anfbuild.engine.remote.transfer import Sent, send
from anfbuild.engine.result import Result
from anfbuild.engine.store import Damaged, Store
from anfbuild.errors import RecipeError, StepError
from anfbuild.recipe import compose

_RECIPE = "+recipe="


def push(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Send all results of the store, or those of the builds of the recipes named, that the remote lacks.

    What is private, and what is not whole here, is left out. Raises RecipeError: no remote, no such build. StepError:
    the remote fails.
    """
    told = _settings(arguments, project)
    store = Store(store_root(project))
    remote = connect(told, os.environ)
    counts = dict.fromkeys(("sent", "present", "different", "private", "incomplete", "blobs", "bytes"), 0)
    different = []
    withheld = _private_keys(store)
    for key in _chosen(store, arguments.overrides):
        result = _entry(store, key)
        if result is None:
            continue
        if result.private or key in withheld:
            counts["private"] += 1
            continue
        try:
            sent = _send(remote, store, result)
        except Damaged:
            counts["incomplete"] += 1
            continue
        counts[sent.entry] += 1
        counts["blobs"] += sent.blobs
        counts["bytes"] += sent.size
        if sent.entry == "different":
            different.append(key)
    console.table([(name, str(count)) for name, count in counts.items()])
    if different:
        warn(
            f"remote {told.name}: it has other outputs under {', '.join(key[:12] for key in different)}, which stay: "
            "those steps do not make the same each time"
        )
    return 0, {"remote": told.name, **counts, "different_keys": different}


def pull(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Bring what the remote has of the recipe's build, bytes and all, and build nothing.

    Raises RecipeError: no remote, or no recipe that can be built. StepError: the remote fails, or sends what is wrong.
    """
    told = _settings(arguments, project)
    recipe = compose(arguments.overrides, project)
    remote = Shared(connect(told, os.environ), warn, give_up=lambda reason: _fail(told.name, reason))
    store = Store(store_root(project))
    run = make(recipe, project, lambda _: None, remote)
    steps = []
    size = 0
    for name in run.ancestors(recipe.config["goal"]):
        result = run.found(name)
        missing = [] if result is None else store.missing(result.files.values())
        whole = result is not None and run.bring(name)
        size += sum(blob[1] for blob in missing) if whole else 0
        state = "absent" if result is None else "incomplete" if not whole else "pulled" if missing else "present"
        steps.append({"step": name, "key": None if result is None else result.key, "state": state})
    console.table([(str(step["step"]), str(step["state"])) for step in steps])
    console.print(f"{size} bytes")
    return 0, {"remote": told.name, "recipe": recipe.name, "steps": steps, "bytes": size}


def _settings(arguments: Arguments, project: Path) -> Settings:
    told = settings(arguments, project)
    if told is None:
        raise RecipeError("no remote is set", where=URL, choices=CHOICES, remedy=f"Set {URL}, or add --remote URL.")
    return told


def _chosen(store: Store, overrides: Iterable[str]) -> list[str]:
    """The keys to send, sorted."""
    names = []
    for override in overrides:
        if not override.startswith(_RECIPE):
            raise RecipeError(
                f"{override!r} says nothing of what to push", where="command line", remedy=f"Write {_RECIPE}NAME."
            )
        names.append(override.removeprefix(_RECIPE).replace("/", "."))
    if not names:
        return sorted(path.stem for path in (store.root / "ac").glob("*.json"))
    known = {str(build["recipe"]) for build in store.builds()}
    for name in names:
        if name not in known:
            raise RecipeError(
                f"no build of the recipe {name!r} is in the store",
                where="command line",
                choices=sorted(known),
                remedy="Build it first.",
            )
    return sorted({key for build in store.builds() if build["recipe"] in names for key in build["steps"].values()})


def _private_keys(store: Store) -> set[str]:
    """The keys of all steps that some build found private, whatever their entries say."""
    return {build["steps"][name] for build in store.builds() for name in build["private"] if name in build["steps"]}


def _entry(store: Store, key: str) -> Result | None:
    """The entry of `key`, as good as it is, without marking it as used."""
    try:
        return parse_entry(key, read_regular(store.entry(key)))
    except (OSError, ValueError):
        return None


def _send(remote: Remote, store: Store, result: Result) -> Sent:
    try:
        return send(remote, store, result)
    except RemoteError as error:
        _fail(remote.name, str(error))


def _fail(name: str, reason: str) -> NoReturn:
    raise StepError(
        f"remote {name}: {reason}",
        remedy=f"Check {URL}, the rights there and the network, then run again: what was done is kept.",
    )
