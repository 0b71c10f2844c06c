"""Why a step would run: what differs from the earlier build that is nearest, field by field.

Nothing is run. A step whose needs have no result yet has no key either: then it is known to run only where no result
in the store was made with its own code, config and tools. Else it depends on what its needs make, and that is told.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from anfbuild.engine.key import FORMAT, canonical
from anfbuild.engine.run import Build
from anfbuild.engine.store import Store

_UNKNOWN_WEIGHT = 1000
"""How far away a step is of whose making nothing is kept: further than any that can be compared."""


@dataclasses.dataclass(frozen=True)
class Reason:
    """One difference of one step. `kind`:

    - changed, added, removed: the value of the config path `field`, `old` -> `new`
    - content: the file or folder that the config path `field` names; `old` and `new` hold its SHA-256, or None
    - tool: the version of the distribution `field`; None where it was, or is, not used
    - code: the package's file `field`, by SHA-256; None where it was, or is, no part of the step
    - input: what it gets of the need `field` differs though that was made of the same things
    - format: of keys and store; no other field is compared then
    - lost: made of the same things, and the result is no longer in the store
    - forgotten: how the earlier result was made is no longer known
    - never: no earlier build of it is known
    """

    step: str
    kind: str
    field: str | None = None
    old: Any = None
    new: Any = None


@dataclasses.dataclass(frozen=True)
class Earlier:
    """A result of the step in question, and the keys of what it was made from."""

    recipe: str
    key: str
    made: float | None
    """Seconds since the epoch; None where that is unknown."""
    seconds: float | None
    """How long the step took; None where that is unknown."""
    steps: Mapping[str, str]
    """Step -> key, of the step and its ancestors."""


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Whether a step would run, and why."""

    step: str
    key: str | None
    """None: not known before what it needs has run."""
    up_to_date: bool | None
    """None: that depends on what the steps of `waits` make."""
    reasons: tuple[Reason, ...] = ()
    waits: tuple[str, ...] = ()
    """Its direct needs that have no result yet."""
    against: Earlier | None = None
    """What was compared with; of a step that is up to date, its own result."""


def explain(build: Build, store: Store, step: str) -> Explanation:
    """Why `step` of `build` would run, over its `store`. Raises RecipeError for an unknown step, or content that cannot
    be read."""
    ancestors = build.ancestors(step)
    result = build.found(step)
    if result is not None:
        return Explanation(step, result.key, True, against=_earlier(store, {step: result.key}, step))
    waits = tuple(dict.fromkeys(need for need, _ in build.needs(step).values() if build.found(need) is None))
    key = build.key(step)
    runs = key is not None or not _was_made_like_this(build, store, step)
    own = {name: {**build.own_fields(name), "files": build.code_files(name)} for name in ancestors}
    comparisons = [_Comparison(build, store, own, found) for found in _candidates(build, store, step, ancestors)]
    if not comparisons:
        return Explanation(step, key, False, (Reason(step, "never"),), waits)
    nearest = min(comparisons, key=_Comparison.distance)  # of equals the first, which is the newest
    return Explanation(step, key, False if runs else None, nearest.reasons(step), waits, nearest.earlier)


def flatten(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config part of a manifest by its leaves: `{"gates.*": {"a": {"max": 1}}}` -> `{"gates.a.max": 1}`.

    What stands for the content of a file is a leaf, as are lists of plain values and what is empty.
    """
    leaves: dict[str, Any] = {}
    for path, value in config.items():
        head, star, rest = path.partition(".*")
        if star and isinstance(value, dict):
            leaves |= flatten({f"{head}.{key}{rest}": below for key, below in value.items()} or {head: value})
        else:
            leaves.update(_leaves(path, value))
    return leaves


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value and not is_content(value):
        for key, below in value.items():
            yield from _leaves(f"{path}.{key}", below)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _leaves(f"{path}[{index}]", item)
    else:
        yield path, value


def is_content(value: Any) -> bool:
    """Whether a value of a manifest's config stands for the bytes of a file or folder."""
    return isinstance(value, dict) and value.keys() == {"suffix", "sha256"}


def _was_made_like_this(build: Build, store: Store, step: str) -> bool:
    """Whether a result in the store was made with the step's own code, config and tools, of whatever inputs."""
    own = canonical(build.own_fields(step))
    return any(
        canonical({name: meta["manifest"].get(name) for name in ("code", "config", "tools")}) == own
        and store.entry(key).is_file()
        for key, meta in store.metas(build.step_name(step))
    )


def _candidates(build: Build, store: Store, step: str, ancestors: list[str]) -> list[Earlier]:
    """The builds of the same recipe that had the step, the newest first; without any, all results of the step, those
    of the recipe first."""
    records = [record["steps"] for record in store.builds(build.name) if step in record.get("steps", {})]
    if not records:
        metas = sorted(store.metas(build.step_name(step)), key=lambda pair: pair[1].get("recipe") != build.name)
        records = [_family(build, store, step, key) for key, _ in metas]
    return [_earlier(store, {name: steps[name] for name in ancestors if name in steps}, step) for steps in records]


def _family(build: Build, store: Store, step: str, key: str) -> dict[str, str]:
    """The keys of a result of `step` and of all that it was made from, under the names that `build` has for them."""
    steps, pending = {step: key}, [step]
    while pending:
        name = pending.pop()
        made: dict[str, str] = store.meta(steps[name]).get("needs", {})
        names = {label.partition("/")[0]: need for label, (need, _) in build.needs(name).items()}
        found = {names[need]: key for need, key in made.items() if need in names}
        pending += [need for need in found if need not in steps]
        steps |= found
    return steps


def _earlier(store: Store, steps: Mapping[str, str], step: str) -> Earlier:
    meta = store.meta(steps[step])
    return Earlier(meta.get("recipe", ""), steps[step], store.made(steps[step]), meta.get("seconds"), steps)


class _Comparison:
    """A build beside an earlier one."""

    def __init__(self, build: Build, store: Store, own: Mapping[str, Mapping[str, Any]], earlier: Earlier) -> None:
        """`own` are, for the step in question and each ancestor, its fields as they are now, and its code's `files`."""
        self.earlier = earlier
        self._build = build
        self._store = store
        self._metas = {name: store.meta(key) for name, key in earlier.steps.items()}
        self._own = {name: list(self._differences(name, fields)) for name, fields in own.items()}
        self._found: dict[str, list[Reason]] = {}

    def distance(self) -> int:
        """In how many fields the two differ, over the step and its ancestors."""
        reasons = [reason for own in self._own.values() for reason in own]
        return sum(_UNKNOWN_WEIGHT if reason.kind == "forgotten" else 1 for reason in reasons)

    def reasons(self, step: str) -> tuple[Reason, ...]:
        """What differs for `step`: itself, and what lies behind those of its inputs that differ or are not there."""
        found: list[Reason] = []
        for reason in self._walk(step):
            if reason not in found:
                found.append(reason)
        return tuple(found)

    def _walk(self, step: str) -> list[Reason]:
        if step not in self._found:
            self._found[step] = [*self._behind(step), *self._own[step]] or self._of_the_result(step)
        return self._found[step]

    def _behind(self, step: str) -> Iterator[Reason]:
        inputs: dict[str, str] = self._manifest(step).get("inputs", {})
        for label, (need, folder) in self._build.needs(step).items():
            result = self._build.found(need)
            now = None if result is None else result.digest(folder)
            if now is not None and inputs.get(label) == now:
                continue
            reasons = self._walk(need)
            yield from reasons
            if not reasons and now is not None and label in inputs:
                yield Reason(step, "input", label, inputs[label], now)

    def _of_the_result(self, step: str) -> list[Reason]:
        """Nothing that the step is made of differs: is the earlier result there?"""
        key = self.earlier.steps.get(step)
        gone = self._build.found(step) is None and key is not None and not self._store.entry(key).is_file()
        return [Reason(step, "lost")] if gone else []

    def _manifest(self, step: str) -> dict[str, Any]:
        manifest: dict[str, Any] = self._metas.get(step, {}).get("manifest", {})
        return manifest

    def _differences(self, step: str, own: Mapping[str, Any]) -> Iterator[Reason]:
        """What the step's own code, config and tools differ in."""
        manifest = self._manifest(step)
        if not manifest:
            if self._build.key(step) is None or self._build.key(step) != self.earlier.steps.get(step):
                yield Reason(step, "forgotten")
            return
        if manifest.get("format") != FORMAT:
            yield Reason(step, "format", None, manifest.get("format"), FORMAT)
            return
        yield from _config(step, self._build.prefix(step), flatten(manifest["config"]), flatten(own["config"]))
        for name, old, new in _pairs(manifest["tools"], own["tools"]):
            yield Reason(step, "tool", name, old, new)
        if manifest["code"] != own["code"]:
            files = _pairs(self._metas[step].get("code", {}), own["files"])
            yield from [Reason(step, "code", *file) for file in files] or [Reason(step, "code")]


def _config(step: str, prefix: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Reason]:
    for path, before, after in _pairs(old, new):
        if is_content(before) or is_content(after):
            yield Reason(step, "content", prefix + path, before, after)
        elif path in old and path in new:
            yield Reason(step, "changed", prefix + path, before, after)
        elif not _was_filled(path, before, new) and not _was_filled(path, after, old):
            yield Reason(step, "added" if path in new else "removed", prefix + path, before, after)


def _was_filled(path: str, value: Any, other: Mapping[str, Any]) -> bool:
    """Whether `value` is the empty mapping at `path`, and `other` has leaves below: these say it all."""
    return value == {} and any(leaf.startswith(f"{path}.") for leaf in other)


def _pairs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(name, old, new) of what differs, None where there is none, by name."""
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        if (name in old) != (name in new) or canonical(before) != canonical(after):
            yield name, before, after
