"""`anfbuild why STEP +recipe=NAME`: whether the step would run, and what differs from the nearest earlier build."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import make, store_root
from anfbuild.cli.console import Console
from anfbuild.cli.located import located
from anfbuild.cli.single import single_recipe
from anfbuild.engine.instances import step_of
from anfbuild.engine.run import Build
from anfbuild.engine.store import Store
from anfbuild.engine.why import Earlier, Explanation, Reason, explain
from anfbuild.errors import AnfbuildError, RecipeError, did_you_mean

_LONGEST = 48
"""Characters of a value that are shown."""
_MOST = 3
"""Differences that the first line names."""


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Explain the step that the command line names. Of a step that each component has, all are explained; of
    `report` and `package`, which join them, the joint one.

    Raises RecipeError, VersionError.
    """
    (step,) = arguments.words
    _check(step)
    recipe = single_recipe(arguments, project)
    try:
        build = make(recipe, project, lambda _: None)
        try:
            store = Store(store_root(project))
            found = [explain(build, store, member) for member in _members(build, step)]
        finally:
            build.close()
    except AnfbuildError as error:
        raise located(error, recipe) from error
    for explanation in found:
        _tell(explanation, console)
    documents = [document(explanation) for explanation in found]
    return 0, documents[0] if found[0].step == step else {"step": step, "components": documents}


def _members(build: Build, step: str) -> list[str]:
    try:
        return build.members(step)
    except RecipeError as error:
        error.where = "command line"
        raise


def _tell(found: Explanation, console: Console) -> None:
    for line in words(found):
        console.print(line)
    if len(found.reasons) > 1:
        console.table([(f"  {reason.step}", difference(reason)) for reason in found.reasons])
    if found.reasons and found.against is not None:
        console.print(f"compared with its result {_result(found.against)}")


def words(found: Explanation) -> Iterable[str]:
    """What is told first: one line."""
    step = found.step
    if found.up_to_date:
        assert found.against is not None
        yield f"{step} is up to date: {_result(found.against)}"
        return
    why = _several([difference(reason) for reason in _distinct(found.reasons)], "; ")
    if found.up_to_date is None:
        waits = _several(found.waits, ", ")
        output = f"{waits}'s output" if len(found.waits) == 1 else f"the output of {waits}"
        yield f"{step} reruns if {output} changes: {why}"
    elif found.against is None:
        yield f"{step} runs: {why}"
    else:
        yield f"{step} reruns: {why}"


def difference(reason: Reason) -> str:
    """One difference in words."""
    old, new = _short(reason.old), _short(reason.new)
    match reason.kind:
        case "never":
            return "no earlier build of it is in the store"
        case "lost":
            return f"{reason.step}'s result is no longer in the store"
        case "forgotten":
            return f"how {reason.step} was made before is no longer known"
        case "format":
            return f"the store's keys have format {new}, then {old}"
        case "input":
            return (
                f"{reason.field} came out different from the same inputs (it was built again: not deterministic, or "
                "damaged)"
            )
        case "content":
            return f"{reason.field}: {_content(reason)}"
        case "code":
            change = "new code" if reason.old is None else "no longer used" if reason.new is None else "code changed"
            return f"{reason.field}: {change}" if reason.field else "its code changed"
        case "tool":
            return f"{reason.field} {reason.old or 'not used'} -> {reason.new or 'not used'}"
        case "added":
            return f"{reason.field} {new} is new"
        case "removed":
            return f"{reason.field} {old} is gone"
    return f"{reason.field} {old} -> {new}"


def document(found: Explanation) -> dict[str, Any]:
    """The same as JSON."""
    against = found.against
    return {
        "step": found.step,
        "up_to_date": found.up_to_date,
        "key": found.key,
        "waits_for": list(found.waits),
        "reasons": [dataclasses.asdict(reason) for reason in found.reasons],
        "against": None
        if against is None
        else {
            "recipe": against.recipe,
            "key": against.key,
            "made": None if against.made is None else _moment(against.made).isoformat(),
            "seconds": against.seconds,
            "steps": dict(against.steps),
        },
    }


def _check(step: str) -> None:
    """Refuse an unknown step before anything is composed. Raises RecipeError."""
    from anfbuild.steps import GRAPH

    if step_of(step) not in GRAPH:
        raise RecipeError(
            f"there is no step {step!r}",
            where="command line",
            choices=sorted(GRAPH),
            remedy=f"{did_you_mean(step, GRAPH)}Write anfbuild why STEP +recipe=NAME.",
        )


def _distinct(reasons: Iterable[Reason]) -> list[Reason]:
    """Each difference once: several steps may read the same field."""
    return list({(reason.kind, reason.field or reason.step): reason for reason in reasons}.values())


def _several(texts: Iterable[str], between: str) -> str:
    shown = list(texts)
    more = f"{between}and {len(shown) - _MOST} more" if len(shown) > _MOST else ""
    return between.join(shown[:_MOST]) + more


def _result(found: Earlier) -> str:
    parts = ["made" if found.made is None else f"made {_moment(found.made):%Y-%m-%d %H:%M}"]
    parts += [f"in {found.seconds:.1f} s"] if found.seconds is not None else []
    parts += [f"by recipe {found.recipe}"] if found.recipe else []
    return f"{' '.join(parts)}, key {found.key[:12]}"


def _moment(seconds: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).astimezone().replace(microsecond=0)


def _content(reason: Reason) -> str:
    if reason.old is None or reason.new is None:
        return "given now" if reason.old is None else "no longer given"
    same = reason.old["sha256"] == reason.new["sha256"]
    return f"{reason.old['suffix']} -> {reason.new['suffix']}" if same else "other bytes"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
