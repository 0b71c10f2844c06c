"""When to stop asking: a remote that fails again and again would make every step wait for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from anfbuild.engine.remote.remote import RemoteError, WrongBytesError

T = TypeVar("T")

PATIENCE = 2
"""Failures in a row."""


class Breaker:
    """Passes questions on until `patience` in a row have failed; then it tells the last reason, once, and is off."""

    def __init__(self, give_up: Callable[[str], None], patience: int = PATIENCE) -> None:
        self._give_up = give_up
        self._patience = patience
        self._failures = 0
        self._lock = threading.Lock()
        self.is_off = False

    def ask(self, question: Callable[[], T]) -> T:
        """The answer. Raises RemoteError: there is none; at once where it is off.

        Wrong bytes are an answer: a remote with one bad entry among good ones is of use.
        """
        if self.is_off:
            raise RemoteError("it is not asked any more")
        try:
            answer = question()
        except WrongBytesError:
            raise
        except RemoteError as error:
            self._failed(str(error))
            raise
        self._failures = 0
        return answer

    def _failed(self, reason: str) -> None:
        with self._lock:
            self._failures += 1
            if self.is_off or self._failures < self._patience:
                return
            self.is_off = True
        self._give_up(reason)
