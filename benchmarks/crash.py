"""Builders that are killed, and disks that fail, at random moments: `python benchmarks/crash.py [--count N --seed N]`.

Each event starts the tiny project of the tests in a store of its own and breaks it off at a moment that is spread over
a whole build. Afterwards the store holds nothing that is wrong, and the next build, undisturbed, gives the bytes that a
clean one gives: every exported file, and what every entry of the store lists. A disk of its own (a tmpfs, which
takes rights that not everybody has) fills up, or becomes read-only. Prints a Markdown table; about three minutes for 60
events.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from anfbuild.engine.entry import parse_entry
from anfbuild.engine.files import hash_regular
from anfbuild.engine.store import Store
from anfbuild.engine.verify import verify


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


projects = _load(Path(__file__).resolve().parents[1] / "tests" / "end_to_end" / "projects.py")
Project, write_tiny = projects.Project, projects.write_tiny

EXPORTS = ("mine.anf", "results.json", "report.html", "encodings.json", "placement.csv")
RECIPE = "+recipe=mine"
_DISK_MB = 64
_SPARE_MB = (0.0, 0.6)
"""What a disk that fills up has left: less than a build of the tiny project writes."""


Event = Callable[[Any, float, random.Random], None]
"""(project, seconds until it is to happen, what else is left to chance)"""


@dataclasses.dataclass
class Row:
    """What became of the events of one kind."""

    count: int = 0
    early: int = 0
    """Events after which the build was not finished: the others came too late to hurt."""
    damage: int = 0
    different: int = 0
    left: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)

    def cells(self) -> list[str]:
        return [str(value) for value in (self.count, self.early, self.damage, self.different, self.left)]


@dataclasses.dataclass(frozen=True)
class Clean:
    """An undisturbed build: what it exports, what its entries list, and how long it takes."""

    exports: dict[str, str]
    entries: dict[str, dict[str, tuple[str, int]]]
    seconds: float


def clean_build(root: Path) -> Clean:
    project = Project(root / "clean", root / "clean store")
    write_tiny(project.folder)
    started = time.monotonic()
    ran = project.run(RECIPE)
    if ran.code:
        raise SystemExit(f"the project does not build at all: {ran.err}")
    return Clean(exports(project), entries(project.store), time.monotonic() - started)


def exports(project: Any) -> dict[str, str]:
    """Exported file -> SHA-256; run.json, which tells of the run, is no result."""
    folder = project.folder / "artifacts" / "builds" / "mine" / "latest"
    return {name: hash_regular(folder / name) for name in EXPORTS if (folder / name).is_file()}


def entries(store: Path) -> dict[str, dict[str, tuple[str, int]]]:
    """Key -> the files that its entry lists."""
    return {path.stem: dict(parse_entry(path.stem, path.read_bytes()).files) for path in (store / "ac").glob("*.json")}


def wrong(store: Path) -> list[str]:
    """The check after each event, which is that of `anfbuild cache verify`."""
    return [f"{damage.kind} {damage.path.name}: {damage.why}" for damage in verify(Store(store)).damage]


def left_over(store: Path) -> list[str]:
    """Processes that still work for the store, and workspaces in it that nobody works in."""
    mark = f"ANFBUILD_CACHE={store}\0".encode()
    deadline = time.monotonic() + 10
    while (processes := [path.name for path in Path("/proc").glob("[0-9]*") if mark in _environment(path)]) and (
        time.monotonic() < deadline
    ):
        time.sleep(0.05)
    workspaces = [path.name for path in (store / "tmp").glob("*")]
    return [f"process {name}" for name in processes] + [f"workspace {name}" for name in workspaces]


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


# ---- the kinds of event: each breaks off a build of `project` after `delay` seconds


def _signal(number: signal.Signals, *, group: bool) -> Event:
    def event(project: Any, delay: float, _: random.Random) -> None:
        process = project.start(RECIPE)
        _wait(process, delay)
        with suppress(ProcessLookupError):  # it was quicker
            (os.killpg if group else os.kill)(process.pid, number)
        process.communicate(timeout=60)

    return event


def _company(project: Any, delay: float, _: random.Random) -> None:
    """Three builders on one store, one of which is killed; the others must not notice."""
    builders = [project.start(RECIPE) for _ in range(3)]
    _wait(builders[0], delay)
    with suppress(ProcessLookupError):
        os.killpg(builders[0].pid, signal.SIGKILL)
    for process in builders:
        _, err = process.communicate(timeout=120)
        if process is not builders[0] and process.returncode:
            raise AssertionError(f"a builder in company ended with {process.returncode}: {err}")


def _full(project: Any, delay: float, draw: random.Random) -> None:
    process = project.start(RECIPE)
    _wait(process, delay)
    disk = project.store.parent
    filler = disk / "filler"
    spare = int(draw.uniform(*_SPARE_MB) * 1e6)
    with filler.open("wb") as file:
        full = False
        while not full and (room := shutil.disk_usage(disk).free - spare) > 0:
            with suppress(OSError):  # the build took some of it meanwhile
                os.posix_fallocate(file.fileno(), 0, room)
                full = True
    _, err = process.communicate(timeout=120)
    if process.returncode not in (0, 1) or "Traceback" in err:
        raise AssertionError(f"on a full disk the build ended with {process.returncode}: {err}")
    filler.unlink(missing_ok=True)


def _read_only(project: Any, delay: float, _: random.Random) -> None:
    process = project.start(RECIPE)
    _wait(process, delay)
    folder, view = str(project.store.parent), project.folder.with_name("view")
    view.mkdir()
    # A mount with files open for writing refuses to become read-only: a view of it that is goes over it. What is open
    # can be written to its end.
    subprocess.run(["mount", "--bind", folder, str(view)], check=True)
    subprocess.run(["mount", "-o", "remount,ro,bind", str(view)], check=True)
    subprocess.run(["mount", "--bind", str(view), folder], check=True)
    try:
        _, err = process.communicate(timeout=120)
    finally:
        for place in (folder, str(view)):
            subprocess.run(["umount", "-l", place], check=True)
    if process.returncode not in (0, 1) or "Traceback" in err:
        raise AssertionError(f"on a read-only disk the build ended with {process.returncode}: {err}")


def _wait(process: subprocess.Popen[str], delay: float) -> None:
    try:
        process.wait(delay)
    except subprocess.TimeoutExpired:
        return


KINDS: dict[str, Event] = {
    "SIGKILL": _signal(signal.SIGKILL, group=False),
    "SIGTERM": _signal(signal.SIGTERM, group=False),
    "SIGKILL, whole group": _signal(signal.SIGKILL, group=True),
    "SIGKILL, one of three builders": _company,
    "full disk": _full,
    "read-only disk": _read_only,
}
ON_A_DISK = ("full disk", "read-only disk")


@contextmanager
def disk(folder: Path) -> Iterator[None]:
    """A small tmpfs at `folder`. Raises PermissionError where it cannot be mounted."""
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "tmpfs", str(folder)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PermissionError(done.stderr.strip())
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def run_event(kind: str, root: Path, clean: Clean, delay: float, draw: random.Random, row: Row) -> None:
    """One event, in the empty folder `root`, and what came of it, added to `row`."""
    project = Project(root / "project", root / "disk" / "store")
    write_tiny(project.folder)
    row.count += 1
    try:
        KINDS[kind](project, delay, draw)
        row.early += not exports(project)
        faults = wrong(project.store)
        row.damage += bool(faults)
        again = project.run(RECIPE, "--json")
        same = again.code == 0 and exports(project) == clean.exports and entries(project.store) == clean.entries
        row.different += not same
        if left_over(project.store):  # who was killed after the last step left his workspace to the next step that runs
            project.run(RECIPE, "calibration=minmax", "goal=quantize")
        left = left_over(project.store)
        row.left += bool(left)
        row.faults += [*faults, *left, *([] if same else [f"the next build: exit {again.code} {again.err}"])]
    except (AssertionError, subprocess.TimeoutExpired) as error:
        row.different += 1
        row.faults.append(str(error))


def campaign(count: int, seed: int, root: Path) -> tuple[dict[str, Row], dict[str, str]]:
    """`count` events, shared among the kinds, each kind's moments spread evenly over a build and then moved a little.

    Returns what became of each kind, and why kinds were left out.
    """
    draw = random.Random(seed)
    clean = clean_build(root)
    rows = {kind: Row() for kind in KINDS}
    skipped: dict[str, str] = {}
    for number in range(count):
        kind = list(KINDS)[number % len(KINDS)]
        if kind in skipped:
            continue
        rounds = -(-count // len(KINDS))
        delay = clean.seconds * (number // len(KINDS) + draw.random()) / rounds
        folder = root / str(number)
        folder.mkdir()
        try:
            if kind in ON_A_DISK:
                with disk(folder / "disk"):
                    run_event(kind, folder, clean, delay, draw, rows[kind])
            else:
                run_event(kind, folder, clean, delay, draw, rows[kind])
        except PermissionError as error:
            skipped[kind] = f"left out: no tmpfs can be mounted here ({error})"
        shutil.rmtree(folder)
    return rows, skipped


def main() -> int:
    from project import table

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anfbuild-crash-") as name:
        rows, skipped = campaign(arguments.count, arguments.seed, Path(name).resolve())
    headings = ["event", "count", "of them before the end", "damage found", "other outputs", "left over"]
    print(table(headings, [[kind, *row.cells()] for kind, row in rows.items() if kind not in skipped]))
    for kind, why in skipped.items():
        print(f"{kind}: {why}")
    faults = [f"{kind}: {fault}" for kind, row in rows.items() for fault in row.faults]
    print("\n".join(faults))
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
