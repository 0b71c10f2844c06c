"""Sending in the background, so that no step waits for it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

_THREADS = 2
_LENGTH = 512
"""Of the queue, which holds names, never bytes."""


class Uploader(Generic[T]):
    """A queue, and threads that `send` what is in it, which says whether it could. They die with the process."""

    def __init__(self, send: Callable[[T], bool]) -> None:
        self._send = send
        self._queue: deque[T] = deque()
        self._threads: list[threading.Thread] = []
        self._sending = 0
        self._unsent = 0
        self._changed = threading.Condition()

    def submit(self, item: T) -> None:
        """Send `item` some time; where the queue is full it counts as unsent."""
        with self._changed:
            if len(self._queue) >= _LENGTH:
                self._unsent += 1
                return
            self._queue.append(item)
            self._changed.notify_all()
            self._threads = [thread for thread in self._threads if thread.is_alive()]  # none is after a fork
            if len(self._threads) < _THREADS:
                thread = threading.Thread(target=self._work, name="anfbuild-upload", daemon=True)
                self._threads.append(thread)
                thread.start()

    def drain(self, seconds: float) -> int:
        """Wait until all is sent, or for `seconds`, and forget the rest. Returns how many were not sent since the last
        call."""
        with self._changed:
            self._changed.wait_for(lambda: not self._queue and not self._sending, seconds)
            unsent = self._unsent + len(self._queue) + self._sending
            self._queue.clear()
            self._unsent = 0
            return unsent

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue)
                item = self._queue.popleft()
                self._sending += 1
            sent = False
            try:
                sent = self._send(item)
            finally:
                with self._changed:
                    self._sending -= 1
                    self._unsent += not sent
                    self._changed.notify_all()
