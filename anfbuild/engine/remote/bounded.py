"""A remote that answers in time or not at all.

Time-outs of sockets bound the wait for the next byte; a name that does not resolve, a header that drips and a mount
that hangs need a bound of the whole, whatever the kind.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from anfbuild.engine.remote.remote import FLOOR, GRACE_S, Remote, RemoteError

T = TypeVar("T")

LIMIT_S = 3 * GRACE_S
"""Seconds for an answer without regard to its size."""


class Bounded:
    """Asks another remote, and gives an answer up that takes longer than its size allows."""

    def __init__(self, name: str, connect: Callable[[], Remote], limit_s: float = LIMIT_S) -> None:
        """`connect` is called when the remote is first asked: a build that has nothing to do asks nothing, and does
        not import what asking takes."""
        self._name = name
        self._connect = connect
        self._limit_s = limit_s

    @property
    def name(self) -> str:
        return self._name

    @functools.cached_property
    def _remote(self) -> Remote:
        return self._connect()

    def get_action(self, key: str) -> bytes | None:
        return self._within(0, lambda: self._remote.get_action(key))

    def put_action(self, key: str, data: bytes) -> None:
        self._within(len(data), lambda: self._remote.put_action(key, data))

    def has_blob(self, sha: str, size: int) -> bool:
        return self._within(0, lambda: self._remote.has_blob(sha, size))

    def get_blob(self, sha: str, size: int, destination: Path) -> bool:
        return self._within(size, lambda: self._remote.get_blob(sha, size, destination))

    def put_blob(self, sha: str, path: Path) -> None:
        self._within(path.stat().st_size, lambda: self._remote.put_blob(sha, path))

    def _within(self, size: int, call: Callable[[], T]) -> T:
        """`call()`, in a thread that dies with the process if it never ends."""
        seconds = self._limit_s + size / FLOOR
        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(call())
            except BaseException as error:
                outcome.set_exception(error)

        threading.Thread(target=run, name="anfbuild-remote", daemon=True).start()
        try:
            return outcome.result(seconds)
        except TimeoutError:
            raise RemoteError(f"no answer within {seconds:.0f} s") from None
