"""A toy graph of three steps for the engine's tests: `words` -> `count` and `shout`."""

from __future__ import annotations

import copy
import dataclasses
import errno
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import anfbuild
from anfbuild.engine.cache import Cache
from anfbuild.engine.code import CodeIndex
from anfbuild.engine.instances import Part
from anfbuild.engine.memo import Memo
from anfbuild.engine.run import Build, Event
from anfbuild.engine.step import Job, Step, at, step
from anfbuild.engine.store import Store
from anfbuild.errors import StepError


@dataclasses.dataclass(frozen=True)
class Words:
    text: str = at("toy.text")
    file: Path | None = at("toy.file", content=True)


@step(config=Words)
def words(job: Job[Words]) -> None:
    """Write the words of a text, one folder for the short and one for the long."""
    text = job.config.text + (job.config.file.read_text() if job.config.file else "")
    for folder, keep in (("short", lambda word: len(word) < 4), ("long", lambda word: len(word) >= 4)):
        (job.output / folder).mkdir()
        (job.output / folder / "words.txt").write_text("\n".join(filter(keep, text.split())))


@dataclasses.dataclass(frozen=True)
class Count:
    unit: str = at("toy.unit")


@step(needs=("words",), config=Count)
def count(job: Job[Count]) -> None:
    """Count all words."""
    total = sum(len(f.read_text().split()) for f in job.inputs["words"].rglob("words.txt"))
    job.observe("total", total)
    (job.output / "count.txt").write_text(f"{total} {job.config.unit}")


@dataclasses.dataclass(frozen=True)
class Shout:
    fail: str = at("toy.fail")


@step(needs=("words/long", "count"), config=Shout)
def shout(job: Job[Shout]) -> None:
    """Shout the long words, or fail when the recipe says so."""
    if job.config.fail == "error":
        raise ValueError("no voice")
    if job.config.fail == "memory":
        raise MemoryError
    if job.config.fail == "disk":
        raise OSError(errno.ENOSPC, "No space left on device")
    if job.config.fail == "input":
        raise StepError("no count", where=str(job.inputs["count"] / "count.txt"), choices=[job.output / "a"])
    if job.config.fail == "interrupt":
        raise KeyboardInterrupt
    count_text = (job.inputs["count"] / "count.txt").read_text()
    text = (job.inputs["words/long"] / "words.txt").read_text().upper()
    (job.output / "shout.txt").write_text(f"{count_text}: {text}")


GRAPH: dict[str, Step] = {s.name: s for s in (words, count, shout)}
TREE = {"toy": {"text": "make for on device", "file": None, "unit": "words", "fail": ""}}


def make(
    root: Path,
    graph: Mapping[str, Step] | None = None,
    *,
    name: str = "toy",
    store: Store | None = None,
    cache: Cache | None = None,
    notify: Callable[[Event], None] = print,
    private: Iterable[str] = (),
    parts: Mapping[str, Part] | None = None,
    joint: Mapping[str, Step] | None = None,
    **changes: Any,
) -> Build:
    """A build of the toy graph, or of `graph`, in the project `root`, with `changes` to the recipe's values."""
    cache = cache or Cache(store or Store(root / "store"))
    tree = copy.deepcopy(TREE)
    tree["toy"].update(changes)
    return Build(
        name,
        graph or GRAPH,
        tree,
        cache,
        project=root,
        code=CodeIndex("anfbuild", Path(anfbuild.__file__).parent, Memo(cache.store.memo_file)),
        notify=notify,
        private=private,
        parts=parts,
        joint=joint,
    )
