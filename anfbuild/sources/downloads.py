"""Downloads that go on where an earlier one stopped, be it in another run, and say how far they are.

An unfinished file lies in a folder that outlives the run, under a name made of what is fetched, with what the server
calls this version of it. It is never trusted: its bytes are hashed again, and where the whole has another digest than
the pinned one, all of it is fetched once more from the start. Only what is pinned is kept.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from anfbuild.atomic import replacing
from anfbuild.errors import RecipeError, StepError
from anfbuild.sources.verify import hash_into

MOST_BYTES = 64 * 10**9
"""Bound on one download."""
TIMEOUT_S = 6 * 3600.0
"""Bound on the whole of one download, in seconds."""
IDLE_S = 60.0
"""Bound on the wait for the next bytes, in seconds."""
KEPT_BYTES = 64 * 10**9
"""Bound on what is kept of unfinished downloads, but for those that run."""
KEPT_S = 14 * 24 * 3600.0
"""How long one is kept, in seconds."""

CONNECT = "Look at the address and the connection, and run again: what has come is kept where the server allows it."
_ATTEMPTS = 6
_CHUNK = 1 << 20


class Limits(NamedTuple):
    """What bounds a download."""

    most_bytes: int = MOST_BYTES
    timeout_s: float = TIMEOUT_S
    idle_s: float = IDLE_S
    pause_s: float = 2.0
    """Before the second attempt; each later one waits longer by as much."""
    tell_s: float = 5.0
    """Between two words on how far it is."""


def _silent(received: int, total: int | None) -> None:
    """Nobody listens."""


@dataclasses.dataclass(frozen=True)
class Downloads:
    """How downloads are made, whatever from."""

    keep: Path | None = None
    """The folder for unfinished ones; null where nothing outlives the run."""
    tell: Callable[[int, int | None], None] = _silent
    """Called now and then with the bytes that have come, and with how many there are, if that is known."""
    limits: Limits = dataclasses.field(default_factory=Limits)


class Opened(NamedTuple):
    """A body that has begun to come."""

    start: int
    """The position in the file of its first byte: 0, or the one that was asked for."""
    total: int | None
    """Bytes of the whole file."""
    tag: str | None
    """What the server calls this version of the file: without it, a rest may be that of another."""
    chunks: Iterator[bytes]
    """Raises Cut where the connection breaks."""


Open = Callable[[int, str | None], AbstractContextManager[Opened]]
"""Asks for the file from a position on, if it still is the version of that tag. Raises Cut."""


class Cut(Exception):
    """No bytes, or no more of them, and why; `final` where it is no use to ask again."""

    def __init__(self, reason: str, *, final: bool = False, remedy: str = CONNECT) -> None:
        self.final = final
        self.remedy = remedy
        super().__init__(reason)


def fetch_pinned(what: str, open_: Open, sha256: str | None, target: Path, downloads: Downloads) -> Path:
    """Download to `target`, which appears at once, whole, and only when its SHA-256 is `sha256`.

    Raises RecipeError for a missing digest, naming that of what was downloaded; StepError, naming `what`, for what
    cannot be had.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with _partial(what, sha256, target, downloads.keep) as partial:
        resumed = partial.received > 0
        found = receive(what, open_, partial, downloads)
        if resumed and found != (sha256 or "").lower():
            partial.clear()
            found = receive(what, open_, partial, downloads)
        if sha256 is not None and found == sha256.lower():
            partial.move(target)
            return target
        partial.clear()
        if sha256 is None:
            raise RecipeError(
                f"{what} is not pinned", where="source.sha256", remedy=f"Write its digest: sha256: {found}"
            )
        raise StepError(
            f"{what} is not the pinned file: its SHA-256 is {found}, expected {sha256.lower()}",
            remedy="The server gives another file than the recipe was written for: ask why before you change it.",
        )


def receive(what: str, open_: Open, partial: Partial, downloads: Downloads) -> str:
    """Write what comes to `partial` until it is whole; its SHA-256. After a cut, only the rest is asked for."""
    limits = downloads.limits
    end = time.monotonic() + limits.timeout_s
    teller = _Teller(downloads)
    cut = Cut("nothing was asked")
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(min(attempt * limits.pause_s, max(end - time.monotonic(), 0)))
        if partial.is_whole:
            return partial.digest
        try:
            with open_(partial.received, partial.tag) as opened:
                partial.begin(opened)
                _refuse_size(what, opened.total, partial, limits)
                teller.tell(partial, now=opened.start > 0)
                for chunk in opened.chunks:
                    partial.append(chunk)
                    _refuse_size(what, partial.received, partial, limits)
                    if time.monotonic() > end:
                        raise StepError(f"{what} was not downloaded within {limits.timeout_s:g} s", remedy=CONNECT)
                    teller.tell(partial)
            if opened.total is None or partial.is_whole:
                return partial.digest
            cut = Cut(f"the connection was cut after {partial.received} bytes")
        except Cut as error:
            cut = error
            if error.final:
                break
    raise StepError(f"{what} cannot be fetched: {cut}", remedy=cut.remedy)


def _refuse_size(what: str, size: int | None, partial: Partial, limits: Limits) -> None:
    if size is None or size <= limits.most_bytes:
        return
    why = "it does not end" if size == partial.received else f"it has {size} bytes"
    partial.clear()
    raise StepError(f"{what} is larger than {limits.most_bytes} bytes, the most allowed: {why}", remedy=CONNECT)


class _Teller:
    """Tells how far a download is, no more often than people read."""

    def __init__(self, downloads: Downloads) -> None:
        self._downloads = downloads
        self._told = time.monotonic()

    def tell(self, partial: Partial, *, now: bool = False) -> None:
        if now or time.monotonic() - self._told >= self._downloads.limits.tell_s:
            self._told = time.monotonic()
            self._downloads.tell(partial.received, partial.total)


class Partial:
    """A file that has come in part. Opened where it lies, with what an earlier run left of it."""

    def __init__(self, path: Path, *, kept: bool) -> None:
        """`kept` where an earlier run may have left something, and a later one may find it."""
        self.path = path
        self._kept = kept
        self.tag: str | None = None
        self.total: int | None = None
        self.received = 0
        self._hash = hashlib.sha256()
        if kept:
            self._take_up()
        if self.tag is None:
            self.clear()

    @property
    def digest(self) -> str:
        """SHA-256 of what has come."""
        return self._hash.hexdigest()

    @property
    def is_whole(self) -> bool:
        """Whether all has come that the server said there is."""
        return self.total is not None and self.received == self.total

    def begin(self, opened: Opened) -> None:
        """Make ready for a body: it goes on where this ends, or takes the place of all of it."""
        if opened.start == 0 or opened.start != self.received:
            self.clear()
        if opened.start != self.received:
            raise Cut("the server sends another part of the file than was asked for")
        if (opened.tag, opened.total) != (self.tag, self.total):
            self.tag, self.total = opened.tag, opened.total
            if self._kept:
                self._write_note()

    def append(self, chunk: bytes) -> None:
        """Add bytes at the end."""
        with self.path.open("ab") as file:
            file.write(chunk)
        self._hash.update(chunk)
        self.received += len(chunk)

    def clear(self) -> None:
        """Begin anew."""
        self._note.unlink(missing_ok=True)  # first: bytes without a note are never taken up
        self.path.unlink(missing_ok=True)
        self.path.touch()
        self.tag, self.total, self.received, self._hash = None, None, 0, hashlib.sha256()

    def move(self, target: Path) -> None:
        """Give the file its place."""
        shutil.move(self.path, target)
        target.chmod(0o644)
        self._note.unlink(missing_ok=True)

    def tidy(self) -> None:
        """Remove what no later run could take up."""
        if self.tag is None or not self.received:
            self._note.unlink(missing_ok=True)
            self.path.unlink(missing_ok=True)

    @property
    def _note(self) -> Path:
        return self.path.with_suffix(".json")

    def _write_note(self) -> None:
        with replacing(self._note) as file:
            file.write_text(json.dumps({"tag": self.tag, "total": self.total}), encoding="utf-8")

    def _take_up(self) -> None:
        with suppress(OSError, ValueError, TypeError, KeyError):
            note = json.loads(self._note.read_text(encoding="utf-8"))
            tag, total = note["tag"], note["total"]
            if not isinstance(tag, str) or not (total is None or isinstance(total, int)):
                return
            if self.path.is_symlink() or not self.path.is_file():
                return
            with self.path.open("rb") as file:
                self.received = hash_into(file, self._hash)
            self.tag, self.total = tag, total


@contextmanager
def _partial(what: str, sha256: str | None, target: Path, keep: Path | None) -> Iterator[Partial]:
    """The place for an unfinished download: in `keep`, where nobody else is at it, or beside the target."""
    if keep is not None and sha256 is not None:
        from filelock import FileLock, Timeout

        name = hashlib.sha256(f"{what}\n{sha256.lower()}".encode()).hexdigest()
        with suppress(Timeout):
            keep.mkdir(parents=True, exist_ok=True)
            with FileLock(keep / f"{name}.lock", timeout=0):
                _make_room(keep, name)
                partial = Partial(keep / f"{name}.part", kept=True)
                try:
                    yield partial
                finally:
                    partial.tidy()
                return
    path = target.with_name(f".{target.name}.part")
    try:
        yield Partial(path, kept=False)
    finally:
        path.unlink(missing_ok=True)


def _make_room(keep: Path, mine: str) -> None:
    """Remove from `keep` what nobody is at that is too old, and then the oldest, until the rest is within bounds."""
    from filelock import FileLock, Timeout

    parts = [(path.lstat().st_mtime, path.lstat().st_size, path) for path in keep.glob("*.part")]
    total = sum(size for _, size, _ in parts)
    for made, size, path in sorted(parts):
        if path.stem == mine or (time.time() - made < KEPT_S and total <= KEPT_BYTES):
            continue
        with suppress(Timeout, OSError), FileLock(path.with_suffix(".lock"), timeout=0):
            for suffix in (".json", ".part", ".lock"):
                path.with_suffix(suffix).unlink(missing_ok=True)
            total -= size
