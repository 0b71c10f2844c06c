"""Two builds of one recipe, step by step: whether the same came out."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from anfbuild.cli.tolerance import TOLERANCE, first_difference
from anfbuild.engine.result import Result
from anfbuild.engine.store import Damaged, Store

SAME, NEAR, UNTOLD, DIFFERS = "same", "within tolerance", "not compared", "differs"


@dataclasses.dataclass(frozen=True)
class File:
    """One file that is not the same bytes in both."""

    name: str
    verdict: str
    detail: str = ""


@dataclasses.dataclass(frozen=True)
class Line:
    """What became of one step. `files` counts all of its files, `off` holds those with other bytes."""

    step: str
    files: int
    off: tuple[File, ...] = ()
    same_inputs: bool = True

    @property
    def verdict(self) -> str:
        """The worst of its files'."""
        found = {file.verdict for file in self.off}
        return next((verdict for verdict in (DIFFERS, UNTOLD, NEAR) if verdict in found), SAME)


@dataclasses.dataclass(frozen=True)
class Built:
    """A build that is done: a store, and in it the key of each step."""

    store: Store
    keys: Mapping[str, str]

    def result(self, step: str) -> Result | None:
        return self.store.lookup(self.keys[step]) if step in self.keys else None

    def cpu_class(self, step: str) -> str:
        """The class of the CPU that the step ran on."""
        return str(self.store.meta(self.keys[step]).get("host", {}).get("cpu_class", "an unknown CPU"))

    def inputs(self, step: str) -> Mapping[str, str]:
        inputs: dict[str, str] = self.store.meta(self.keys[step]).get("manifest", {}).get("inputs", {})
        return inputs

    def json(self, result: Result, name: str) -> Any:
        """The document in a file; None for one that is none, or whose bytes are not to be had."""
        with suppress(Damaged, ValueError, RecursionError):
            return json.loads(self.store.read(result, name)) if name.endswith(".json") else None
        return None


def compare(steps: Iterable[str], one: Built, two: Built) -> list[Line]:
    """A line for each of `steps`: bytes against bytes, or by `TOLERANCE` where the step ran on two CPU classes."""
    return [_line(step, one, two) for step in steps]


def first(lines: Iterable[Line]) -> Line | None:
    """The step that made the first difference: the lines come in the order in which steps need one another."""
    return next((line for line in lines if line.verdict == DIFFERS), None)


def _line(step: str, one: Built, two: Built) -> Line:
    before, after = one.result(step), two.result(step)
    if before is None or after is None:
        return Line(step, 0, (File("", DIFFERS, "its result is gone from one of the stores"),))
    names = sorted(before.files.keys() | after.files.keys())
    off = [name for name in names if before.files.get(name) != after.files.get(name)]
    return Line(
        step,
        len(names),
        tuple(_file(step, name, (one, before), (two, after)) for name in off),
        one.inputs(step) == two.inputs(step),
    )


def _file(step: str, name: str, one: tuple[Built, Result], two: tuple[Built, Result]) -> File:
    missing = [built for built, result in (one, two) if name not in result.files]
    if missing:
        return File(name, DIFFERS, "only made the second time" if missing[0] is one[0] else "only made the first time")
    was, now = one[0].cpu_class(step), two[0].cpu_class(step)
    documents = one[0].json(one[1], name), two[0].json(two[1], name)
    readable = None not in documents
    if was == now:
        return File(name, DIFFERS, (first_difference(*documents) or "") if readable else "")
    if not readable:
        return File(name, UNTOLD, f"made on {was}, this is {now}")
    detail = first_difference(*documents, TOLERANCE)
    return File(name, DIFFERS, detail) if detail else File(name, NEAR, f"within {TOLERANCE:g}, made on {was}")
