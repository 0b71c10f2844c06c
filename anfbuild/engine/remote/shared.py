"""A remote as a build sees it: it helps where it can, and whatever it does, the build goes on.

Dead, slow, full, lying: what cannot be had is built. What is wrong is told, once, and not asked for again. Nothing here
raises RemoteError.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from anfbuild.engine.remote.breaker import PATIENCE, Breaker
from anfbuild.engine.remote.entry import decode
from anfbuild.engine.remote.remote import Remote, RemoteError, WrongBytesError
from anfbuild.engine.remote.transfer import send
from anfbuild.engine.remote.uploader import Uploader
from anfbuild.engine.result import Result
from anfbuild.engine.store import Damaged, Store

_THREADS = 4


@dataclasses.dataclass(frozen=True)
class _Upload:
    store: Store
    step: str
    result: Result


class Shared:
    """`remote`, for all builds of this process, so that what was found out about it holds for all."""

    def __init__(
        self,
        remote: Remote,
        warn: Callable[[str], None],
        *,
        write: bool = False,
        wait_s: float = 60.0,
        give_up: Callable[[str], None] | None = None,
    ) -> None:
        """`warn` takes a line for the user, from any thread. With `give_up`, the first failure, or wrong answer, ends
        with a call of it, which may raise, in place of a second try and a warning."""
        self.writes = write
        self._remote = remote
        self._warn = warn
        self._wait_s = wait_s
        self._reading = Breaker(give_up or self._read_failed, 1 if give_up else PATIENCE)
        self._writing = Breaker(self._write_failed)
        self._asked: set[str] = set()
        self._lost: set[str] = set()
        self._give_up = give_up
        self._told_failure = False
        self._told_wrong = False
        self._uploader = Uploader(self._upload)

    @property
    def name(self) -> str:
        """What messages call it."""
        return self._remote.name

    def find(self, key: str, store: Store) -> Result | None:
        """What the remote has under `key`, asked for once; a wrong entry is put aside in `store`."""
        if key in self._asked:
            return None
        self._asked.add(key)
        data = b""
        try:
            answer = self._reading.ask(lambda: self._remote.get_action(key))
            if answer is None:
                return None
            data = answer
            return decode(key, data)
        except (WrongBytesError, ValueError) as error:
            store.set_aside(f"{key}.remote.json", data)
            self._tell_wrong(f"{error} came for {key[:12]}")
        except RemoteError:
            pass
        return None

    def fetch(self, blobs: Iterable[tuple[str, int]], store: Store) -> bool:
        """Whether `blobs`, as (SHA-256, bytes), could all be brought to `store`."""
        wanted = list(blobs)
        if self._reading.is_off or any(sha in self._lost for sha, _ in wanted):
            return False
        first, _ = wanted[0]
        with store.lock(first):  # who wants the same lets one fetch it
            wanted = store.missing(wanted)
            with store.workspace(first) as folder:
                if sum(size for _, size in wanted) > shutil.disk_usage(folder).free // 2:
                    self._lost.update(sha for sha, _ in wanted)
                    self._tell_wrong("what it says it has is more than there is room for")
                    return False
                pool = ThreadPoolExecutor(_THREADS)
                try:
                    return all(pool.map(lambda blob: self._fetch(blob[0], blob[1], folder, store), wanted))
                finally:
                    pool.shutdown(wait=False, cancel_futures=True)

    def _fetch(self, sha: str, size: int, folder: Path, store: Store) -> bool:
        path = folder / sha
        try:
            if self._reading.ask(lambda: self._remote.get_blob(sha, size, path)):
                store.add_blob(path, sha)
                return True
            self._lost.add(sha)
        except WrongBytesError as error:
            self._lost.add(sha)
            self._tell_wrong(f"{error} came")
        except (RemoteError, OSError):
            pass  # a full disk of ours is no fault of the remote's; the step will tell of it
        return False

    def upload(self, step: str, result: Result, store: Store) -> None:
        """Send the result of `step` in the background, if anything is sent."""
        if self.writes and not self._writing.is_off:
            self._uploader.submit(_Upload(store, step, result))

    def close(self, *, wait: bool = True) -> None:
        """Wait for what is being sent, but no longer than is set, or not at all; what is not sent by then is not."""
        unsent = self._uploader.drain(self._wait_s if wait else 0)
        if unsent and not self._writing.is_off:
            self._tell_failure(f"results not sent: {unsent}; `anfbuild cache push` sends them")

    def _upload(self, item: _Upload) -> bool:
        try:
            sent = self._writing.ask(
                lambda: send(self._remote, item.store, item.result, doubted=frozenset(self._lost.copy()))
            )
        except RemoteError:
            return False
        except (Damaged, OSError):
            return True  # the bytes are gone here: there is nothing to send
        if sent.entry == "different":
            self._warn(
                f"remote {self.name}: it has other outputs of step {item.step!r} ({item.result.key[:12]}), which stay: "
                "the step does not make the same each time"
            )
        return True

    def _read_failed(self, reason: str) -> None:
        self._writing.is_off = True
        self._tell_failure(f"{reason}; going on without it")

    def _write_failed(self, reason: str) -> None:
        self._tell_failure(f"{reason}; nothing more is sent to it now: `anfbuild cache push` sends what is missing")

    def _tell_failure(self, what: str) -> None:
        """Once: whoever knows that a remote fails need not be told how else."""
        if not self._told_failure:
            self._told_failure = True
            self._warn(f"remote {self.name}: {what}")

    def _tell_wrong(self, what: str) -> None:
        if self._give_up is not None:
            self._give_up(what)
        elif not self._told_wrong:
            self._told_wrong = True
            self._warn(f"remote {self.name}: {what}; it is not used, nor are more like it, which are not told")
