"""Programs that download for us, as pip and npm do with what the user has set up for them."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from anfbuild.errors import StepError

_LOOK_S = 1.0
"""Between two looks at what has come, in seconds."""


def run(
    what: str,
    command: Sequence[str],
    scratch: Path,
    timeout_s: float,
    tell: Callable[[int], None],
    tell_s: float,
) -> tuple[int, str]:
    """Run a program that downloads `what`; its exit code, and all that it printed.

    It gets a folder of its own below `scratch` for temporary files, and every `tell_s` seconds `tell` hears how many
    bytes lie there. Raises StepError where it does not end in time.
    """
    folder = scratch / "tmp"
    folder.mkdir()
    with (scratch / "log").open("w+", encoding="utf-8", errors="replace") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(folder)},
        )
        try:
            code = _wait(process, folder, timeout_s, tell, tell_s)
        except subprocess.TimeoutExpired as error:
            raise StepError(
                f"{what} was not downloaded within {timeout_s:g} s", remedy="Look at the connection, and run again."
            ) from error
        finally:
            process.kill()
            process.wait()
        log.seek(0)
        return code, log.read()


def _wait(
    process: subprocess.Popen[bytes], folder: Path, timeout_s: float, tell: Callable[[int], None], tell_s: float
) -> int:
    end = time.monotonic() + timeout_s
    next_word = time.monotonic() + tell_s
    while True:
        left = end - time.monotonic()
        try:
            return process.wait(max(min(_LOOK_S, left), 0.0))
        except subprocess.TimeoutExpired:
            if left <= 0:
                raise
        if time.monotonic() >= next_word:
            next_word = time.monotonic() + tell_s
            tell(_bytes_in(folder))


def _bytes_in(folder: Path) -> int:
    """What lies in a folder that somebody else is writing to."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.lstat().st_size if path.is_file() else 0
    return total
