"""Runs each step in a fresh process and notes what it reads: `python watched.py REQUEST.json`, as a child of a test.

A step may read its job's folders, the files that its slice declares, the data of the package that its key holds, the
interpreter with its packages, and a few files of the system; of the package's code it may call what its key holds.
Whatever else is opened or called, and every environment variable that code outside the installed packages asks for, is
noted as undeclared. Processes that a step starts are watched too. What native code opens on its own is not seen.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import json
import multiprocessing
import os
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SYSTEM = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/shm/", "/etc/os-release", "/usr/share/zoneinfo/")
PYTHON = sorted({*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, str(Path(sys.executable).parent)})
LOG, PACKAGE = "ANFBUILD_WATCH", "ANFBUILD_WATCH_PACKAGE"
"""The variables that hand the name of the log, and the folder of the package, on to processes which a step starts."""
SHIFT = "ANFBUILD_SHIFT_S"
"""Seconds that the clock is ahead by."""
THREADS = "ANFBUILD_THREADS"
"""The one variable that steps may ask for: how many cores to use. The two places differ in it."""
WORKERS = "anfbuild/confined.py"
"""Hands the whole environment on to the worker, which is watched itself."""


class Log:
    """Lines of JSON, one a thing read, from any number of processes."""

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._seen: set[str] = set()

    def note(self, kind: str, what: str) -> None:
        line = json.dumps([kind, what]) + "\n"
        if line not in self._seen:
            self._seen.add(line)
            os.write(self._handle, line.encode())


def watch() -> None:
    """Note from now on each file that is opened for reading, each folder listed, each variable asked for, and each file
    of the package that a called function is from."""
    log = Log(os.environ[LOG])
    calls = functools.partial(_note_call, log, os.environ[PACKAGE], set())
    threading.setprofile(calls)
    sys.setprofile(calls)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = (mode and not set(mode) & set("r+")) or (not mode and flags & (os.O_WRONLY | os.O_CREAT))
            if isinstance(path, str | bytes) and not writes and not _removes(path):
                log.note("file", os.path.abspath(os.fsdecode(path)))  # noqa: PTH100
        elif event in ("os.listdir", "os.scandir"):
            path = arguments[0]
            if isinstance(path, str | bytes | None):
                log.note("folder", os.path.abspath(os.fsdecode(path or ".")))  # noqa: PTH100

    sys.addaudithook(hook)
    ask = os._Environ.__getitem__

    def asked(self: Any, name: Any) -> Any:
        frame = sys._getframe(1)
        while Path(frame.f_code.co_filename).name in ("os.py", "_collections_abc.py", "<frozen os>") or (
            frame.f_code.co_filename.startswith("<frozen") and frame.f_back is not None
        ):
            assert frame.f_back is not None
            frame = frame.f_back
        asker = frame.f_code.co_filename
        if not asker.startswith(tuple(PYTHON)) and not asker.endswith((WORKERS, "watched.py")):
            log.note("variable", str(name))
        return ask(self, name)

    os._Environ.__getitem__ = asked  # type: ignore[method-assign]


def _note_call(log: Log, package: str, seen: set[CodeType], frame: FrameType, event: str, _: Any) -> None:
    code = frame.f_code
    if event != "call" or code in seen:
        return
    if code.co_filename.startswith(package):
        above: FrameType | None = frame
        while above is not None:
            if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(package):
                return  # a module is being loaded: that is not the step's work
            above = above.f_back
        log.note("code", code.co_filename)
    seen.add(code)


def _removes(path: str | bytes) -> bool:
    """Whether a tree is being removed: its folders are opened by names that are relative to others."""
    return not os.fsdecode(path).startswith("/") and sys._getframe(2).f_code.co_filename.endswith("shutil.py")


def shift_clock(seconds: float) -> None:
    """Let Python's clocks of the day be ahead."""
    import datetime

    now, now_ns, gmtime, localtime = time.time, time.time_ns, time.gmtime, time.localtime
    time.time = lambda: now() + seconds
    time.time_ns = lambda: now_ns() + int(seconds * 1e9)
    time.gmtime = lambda at=None: gmtime(time.time() if at is None else at)
    time.localtime = lambda at=None: localtime(time.time() if at is None else at)

    class Shifted(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Any:
            return super().now(tz) + datetime.timedelta(seconds=seconds)

    datetime.datetime = Shifted  # type: ignore[misc]


def undeclared(log: Path, allowed: Iterable[str]) -> list[str]:
    """What of the log is below none of `allowed` folders or files."""
    places = [os.path.realpath(place) for place in allowed]
    found = set()
    for kind, what in map(json.loads, log.read_text(encoding="utf-8").splitlines()):
        real = os.path.realpath(_source(what))
        inside = any(real == place or real.startswith(place.rstrip("/") + "/") for place in places)
        if (kind, what) == ("variable", THREADS):
            continue
        if kind == "variable" or not (inside or what.startswith(SYSTEM)):
            found.add(f"{kind} {_source(what)}")
    return sorted(found)


def _source(path: str) -> str:
    """The source of a file with bytecode, whether that is there or only looked for; any other path as it is."""
    try:
        return importlib.util.source_from_cache(path)
    except ValueError:
        return path


def watched(step: Any, package: Path, files: Iterable[str], report: Callable[[list[str]], None]) -> Any:
    """The step, which reports what it read and should not have."""

    @functools.wraps(step.run)
    def run(job: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder, "log")
            os.environ |= {LOG: str(log), PACKAGE: f"{package}/"}
            log.touch()
            watch()
            try:
                step.run(job)
            finally:
                sys.setprofile(None)
            content = [
                str(getattr(job.config, field.name))
                for field in dataclasses.fields(job.config)
                if field.metadata["content"] and getattr(job.config, field.name) is not None
            ]
            own = [*map(str, job.inputs.values()), str(job.output), str(job.scratch), tempfile.gettempdir()]
            code = [*(str(package / file) for file in files), str(Path(__file__).parent / "watcher"), __file__]
            # Python itself lists folders and loads modules on its way to others: what counts is what is called of them.
            loaded = {f"file {path}" for path in package.rglob("*.py")}
            listed = {
                f"folder {path}" for path in (package, *package.rglob("*"), package.parent, Path(__file__).parent)
            }
            report([line for line in undeclared(log, [*own, *content, *code, *PYTHON]) if line not in loaded | listed])

    return dataclasses.replace(step, run=run)


def _real(request: dict[str, Any], notify: Callable[[Any], None]) -> Any:
    from anfbuild.cli.build import make
    from anfbuild.recipe import compose

    project = Path.cwd()
    return make(compose(request["overrides"], project), project, notify)


def _toy(request: dict[str, Any], notify: Callable[[Any], None]) -> Any:
    import anfbuild
    from anfbuild.engine.cache import Cache
    from anfbuild.engine.code import CodeIndex
    from anfbuild.engine.memo import Memo
    from anfbuild.engine.run import Build
    from anfbuild.engine.store import Store

    graph = getattr(importlib.import_module(request["graph"]), request["name"])
    store = Cache(Store(Path(os.environ["ANFBUILD_CACHE"])))
    code = CodeIndex("anfbuild", Path(anfbuild.__file__).parent, Memo(store.store.memo_file))
    return Build("toy", graph, request["tree"], store, project=Path.cwd(), code=code, notify=notify)


def run_step(request: dict[str, Any], name: str, out: Any) -> None:
    """Run one step, watched, and put `[key, {file: sha256}, what was undeclared]`, or why it failed."""
    import anfbuild

    build = (_toy if "graph" in request else _real)(request, lambda _: None)
    read: list[str] = []
    files = [file for file in build.code_files(name) if ":" not in file]
    package = Path(anfbuild.__file__).parent
    instance = build._steps[name]
    step = watched(instance.step, package, files, read.extend)
    build._steps = {**build._steps, name: dataclasses.replace(instance, step=step)}
    try:
        result = build.result(name)
    except Exception as error:
        out.put(f"{type(error).__name__}: {error}")
    else:
        out.put([result.key, {file: sha for file, (sha, _) in sorted(result.files.items())}, read])


def main() -> None:
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    os.umask(request["umask"])
    build = (_toy if "graph" in request else _real)(request, lambda _: None)
    steps = {}
    names = dict.fromkeys(name for goal in request["goals"] for name in build.ancestors(goal))
    if not request["watch"]:
        results = {name: build.result(name) for name in names}
        steps = {
            name: [result.key, {file: sha for file, (sha, _) in sorted(result.files.items())}, []]
            for name, result in results.items()
        }
        Path(sys.argv[2]).write_text(json.dumps(steps), encoding="utf-8")
        return
    context = multiprocessing.get_context("fork")
    for name in names:
        queue = context.Queue()
        child = context.Process(target=run_step, args=(request, name, queue))
        child.start()
        steps[name] = queue.get(timeout=300)
        child.join()
    Path(sys.argv[2]).write_text(json.dumps(steps), encoding="utf-8")


if __name__ == "__main__":
    if SHIFT in os.environ:
        shift_clock(float(os.environ[SHIFT]))
    main()
