"""Steps that are not allowed: each reads something that its key does not hold. And one that does all it may."""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from anfbuild.engine.step import Job, Step, at, step


@dataclasses.dataclass(frozen=True)
class Slice:
    file: Path | None = at("toy.file", content=True)


def write(job: Job[Slice], text: object) -> None:
    (job.output / "out.txt").write_text(str(text), encoding="utf-8")


@step(config=Slice)
def good(job: Job[Slice]) -> None:
    assert job.config.file is not None
    (job.scratch / "a").write_text("a", encoding="utf-8")
    with tempfile.TemporaryFile() as file:
        file.write(b"b")
    write(job, job.config.file.read_text("utf-8") + (job.scratch / "a").read_text("utf-8"))


@step(config=Slice)
def clock(job: Job[Slice]) -> None:
    write(job, time.time() // 86400)


@step(config=Slice)
def calendar(job: Job[Slice]) -> None:
    write(job, datetime.datetime.now().date())


@step(config=Slice)
def variable(job: Job[Slice]) -> None:
    write(job, len(os.environ.get("NEVER_HEARD_OF", "")))


@step(config=Slice)
def user(job: Job[Slice]) -> None:
    write(job, ascii(str(Path.home())))


@step(config=Slice)
def order(job: Job[Slice]) -> None:
    write(job, list({"one", "two", "three", "four", "five"}))


@step(config=Slice)
def place(job: Job[Slice]) -> None:
    write(job, ascii(str(job.output)))


@step(config=Slice)
def file(job: Job[Slice]) -> None:
    write(job, len(Path("/etc/hostname").read_bytes()) > 0)


@step(config=Slice)
def beside(job: Job[Slice]) -> None:
    assert job.config.file is not None
    write(job, job.config.file.with_name("other.txt").read_text("utf-8"))


@step(config=Slice)
def listing(job: Job[Slice]) -> None:
    write(job, len(list(Path("/etc").iterdir())) > 0)


@step(config=Slice)
def worker(job: Job[Slice]) -> None:
    code = "print(len(open('/etc/hostname').read()) > 0)"
    write(job, subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


@step(config=Slice)
def code(job: Job[Slice]) -> None:
    module = "anfbuild.soc." + "table"
    write(job, importlib.import_module(module).find("sm8650", where="nowhere").name)


GRAPH: dict[str, Step] = {
    one.name: one for one in (good, clock, calendar, variable, user, order, place, file, beside, listing, worker, code)
}
ALL = {**GRAPH, "all": Step("all", tuple(GRAPH), Slice, good.run)}
