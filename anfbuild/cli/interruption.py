"""An interruption that does not get lost.

It comes as KeyboardInterrupt at any point of the program, and code of others makes something else of that: an import
that failed, a field that cannot be read. So it is noted when it comes, and an error that follows is no error. Where the
program does not end within `PATIENCE_S`, it is ended: it may be at any moment, for the store is made for that.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from anfbuild.cli.seam import INTERRUPTED, Build, Outcome

if TYPE_CHECKING:
    from anfbuild.engine.run import Event
    from anfbuild.recipe import Recipe

EXIT_CODE = 130
PATIENCE_S = 20.0
"""Seconds that a build has to end its workers and to tidy up."""

_noted: list[int] = []
_listening: list[bool] = []


@contextlib.contextmanager
def listening() -> Iterator[None]:
    """Take SIGINT and SIGTERM as interruptions, and note them, until the block ends.

    A worker and its folder must not outlive a build that is told to end. SIGINT stays ignored where it is.
    """
    _noted.clear()
    with contextlib.suppress(ValueError):  # not the main thread: whoever called decides
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
        signal.signal(signal.SIGTERM, _interrupt)
        _listening.append(True)
    try:
        yield
    finally:
        if _noted and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        _listening.clear()


def noted() -> bool:
    """Whether an interruption came since `listening` began."""
    return bool(_noted)


def attentive(build: Build) -> Build:
    """`build`, which is not begun after an interruption, and whose error after one is the interruption."""
    return functools.partial(_build, build)


def _build(
    build: Build, recipe: Recipe, project: Path, *, latest: bool, folder: Path | None, notify: Callable[[Event], None]
) -> Outcome:
    if noted():
        raise KeyboardInterrupt
    try:
        outcome = build(recipe, project, latest=latest, folder=folder, notify=notify)
    except Exception as error:
        if noted():
            raise KeyboardInterrupt from error
        raise
    if noted() and outcome.error is not None:
        raise KeyboardInterrupt from outcome.error
    return outcome


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    if _listening and not _noted and hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _give_up)
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    _noted.append(number)
    raise KeyboardInterrupt


def _give_up(_number: int, _frame: FrameType | None) -> NoReturn:
    os.write(2, f"anfbuild: {INTERRUPTED}\n".encode())  # no stream, whose lock somebody may hold
    os._exit(EXIT_CODE)
