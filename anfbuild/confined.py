"""Runs one task of others' code in a worker process: private folder, captured output, bounded time and memory.

The worker is a fresh interpreter, never a fork: a fork after a session existed hangs, and the first compile of a
fresh process is the one whose binary repeats byte for byte.

The memory bound watches the resident set size and kills. RLIMIT_AS does not fit: onnxruntime and the emulator reserve
far more address space than they touch. The size is read every POLL_S seconds from /proc, so an allocation can run
over the bound for that long; where there is no /proc (Windows), memory is not bounded.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import anfbuild
from anfbuild import worker as script
from anfbuild.errors import StepError, Unavailable
from anfbuild.worker import REQUEST, RESPONSE

POLL_S = 0.2
STDOUT, STDERR = "stdout.txt", "stderr.txt"


@contextlib.contextmanager
def private_folder(kind: str) -> Iterator[Path]:
    """A folder of the worker's own, gone with all that others' code dropped into it when the block ends.

    A build that is killed cannot end its block: what such builds left of the same `kind`, a word, is removed here.
    """
    own = _own(kind)
    _remove_orphans(Path(tempfile.gettempdir()), own)
    with tempfile.TemporaryDirectory(prefix=f"{own}{os.getpid()}-", ignore_cleanup_errors=True) as name:
        yield Path(name).resolve()


def _own(kind: str) -> str:
    """The beginning of the names of folders whose process ids mean something here: containers may share a folder.

    The id of the build's process and a random word follow it.
    """
    try:
        return f"anfbuild-{kind}-{os.stat('/proc/self/ns/pid').st_ino}-"  # noqa: PTH116  # a link that is no path
    except OSError:
        return f"anfbuild-{kind}-0-"


def _remove_orphans(folder: Path, own: str) -> None:
    """Remove from `folder` the private folders, of this user, whose builds no longer run (POSIX)."""
    if sys.platform == "win32":  # where the signal 0 is no question
        return
    for path in folder.glob(f"{own}*-*"):
        pid = path.name.removeprefix(own).split("-")[0]
        with contextlib.suppress(OSError):
            status = path.lstat()
            if pid.isdecimal() and stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and _ended(int(pid)):
                shutil.rmtree(path, ignore_errors=True)  # follows no links


def _ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):  # another user's; no pid
        return False
    return False


def run(
    folder: Path,
    module: str,
    task: str,
    request: Mapping[str, object],
    *,
    name: str,
    timeout_s: float,
    memory_gb: float,
) -> dict[str, object]:
    """Runs `task` of the `TASKS` of `module` with `folder` as working directory; returns its response.

    A refusal by the code that is run is in the response under "error". Raises StepError, which calls the worker `name`,
    when it crashed, and of its kinds Unavailable when it ran out of time (`timeout_s` seconds) or memory (`memory_gb`
    GB = 10^9 bytes); the worker is gone in every case, also when the caller is interrupted.
    """
    (folder / REQUEST).write_text(json.dumps({"task": task, **request}), encoding="utf-8")
    with (folder / STDOUT).open("wb") as out, (folder / STDERR).open("wb") as err:
        worker = subprocess.Popen(
            # -P: no module is picked up from the working directory, nor from the worker's own.
            [sys.executable, "-P", str(Path(script.__file__).resolve()), str(os.getpid()), module],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        try:
            _wait(worker, f"the {name} worker", task, timeout_s=timeout_s, memory_gb=memory_gb)
        finally:
            _kill(worker)
    return _response(folder, f"the {name} worker", task, worker.returncode)


def _environment(folder: Path) -> dict[str, str]:
    """The caller's environment, with the package on the path (a checkout too) and temporary files in `folder`."""
    path = [str(Path(anfbuild.__file__).resolve().parent.parent)]
    if "PYTHONPATH" in os.environ:
        path.append(os.environ["PYTHONPATH"])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "TMPDIR": str(folder)}


def _wait(worker: subprocess.Popen[bytes], name: str, task: str, *, timeout_s: float, memory_gb: float) -> None:
    deadline = time.monotonic() + timeout_s
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            worker.wait(timeout=max(0.0, min(POLL_S, deadline - time.monotonic())))
            return
        if time.monotonic() >= deadline:
            raise Unavailable(
                f"{name} did not finish to {task} within {timeout_s:g} s",
                remedy="Make the model's input smaller, or give it more time on a quieter machine.",
            )
        if _resident_bytes(worker.pid) > memory_gb * 1e9:
            raise Unavailable(
                f"{name} took more than {memory_gb:g} GB of memory to {task}",
                remedy="Make the model's input smaller, or allow more memory.",
            )


def _resident_bytes(pid: int) -> int:
    """The resident set size of a process in bytes; 0 where it cannot be read (ended, or no /proc)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    sizes = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(sizes[0]) * 1024 if sizes else 0


def _kill(worker: subprocess.Popen[bytes]) -> None:
    """Kills the worker with every process that it started."""
    if worker.poll() is not None:
        return
    if sys.platform == "win32":
        worker.kill()
    else:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(worker.pid, signal.SIGKILL)  # start_new_session made it the leader of its own group
    worker.wait()


def _response(folder: Path, name: str, task: str, code: int) -> dict[str, object]:
    try:
        response = json.loads((folder / RESPONSE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        response = None
    if isinstance(response, dict):
        return response
    raise StepError(
        f"{name} {_ending(code)} while it was to {task}{_last_words(folder)}",
        remedy="This is a fault of the library that it runs or of the machine: run again, then change the model.",
    )


def _ending(code: int) -> str:
    if code < 0:
        try:
            return f"was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with code {code}"


def _last_words(folder: Path, lines: int = 5) -> str:
    """The last lines that the worker wrote, as an indented block."""
    words: list[str] = []
    for name in (STDERR, STDOUT):
        with contextlib.suppress(OSError):
            text = (folder / name).read_text(encoding="utf-8", errors="replace")
            words += [line.strip() for line in text.splitlines() if line.strip()][-lines:]
    return "".join(f"\n  {line}" for line in words[:lines]) or " and wrote nothing"
