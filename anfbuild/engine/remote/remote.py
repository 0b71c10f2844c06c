"""What every kind of remote can do, and how much of what it sends is believed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

MAX_ENTRY = 16 << 20
"""Bytes of an action entry; some 10^5 files."""

CHUNK = 1 << 18

FLOOR = 50_000
"""Bytes a second that a remote has to reach, on the average of one answer, to be worth waiting for."""

GRACE_S = 10.0
"""Seconds in which an answer need not have reached FLOOR."""


class RemoteError(Exception):
    """A remote did not do what it was asked to. The text is short and holds no secret."""


class WrongBytesError(RemoteError):
    """A remote answered with something else than what it was asked for."""


class Remote(Protocol):
    """A place that keeps action entries under keys, and bytes under their SHA-256. All raise RemoteError."""

    @property
    def name(self) -> str:
        """What messages call it: no path of a user's, no secret."""
        ...

    def get_action(self, key: str) -> bytes | None:
        """The entry under `key`, as it came; at most MAX_ENTRY bytes."""
        ...

    def put_action(self, key: str, data: bytes) -> None:
        """Keep an entry, in place of the one that may be there."""
        ...

    def has_blob(self, sha: str, size: int) -> bool:
        """Whether bytes of this size are there under `sha`; nobody looks at them."""
        ...

    def get_blob(self, sha: str, size: int, destination: Path) -> bool:
        """Write the bytes with this SHA-256 to the new file `destination`; False where they are not there.

        Never more than `size` bytes are taken. Raises WrongBytesError: it is not these.
        """
        ...

    def put_blob(self, sha: str, path: Path) -> None:
        """Keep the bytes of the file `path`, whose SHA-256 the caller has verified."""
        ...


def collect(chunks: Iterable[bytes]) -> bytes:
    """All of an entry. Raises WrongBytesError: it does not end in MAX_ENTRY bytes. RemoteError: it comes too slowly."""
    data = bytearray()
    for chunk in _paced(chunks):
        data += chunk
        if len(data) > MAX_ENTRY:
            raise WrongBytesError(f"an entry of more than {MAX_ENTRY} bytes")
    return bytes(data)


def receive(chunks: Iterable[bytes], sha: str, size: int, destination: Path) -> None:
    """Write `chunks` to the new file `destination`, and verify them on the way.

    Raises WrongBytesError: they are more, fewer or others. RemoteError: they come too slowly.
    """
    hasher = hashlib.sha256()
    received = 0
    with destination.open("xb") as file:
        for chunk in _paced(chunks):
            received += len(chunk)
            if received > size:
                break
            hasher.update(chunk)
            file.write(chunk)
    if received != size or hasher.hexdigest() != sha:
        raise WrongBytesError(f"bytes that are not those of {sha[:12]}")


def _paced(chunks: Iterable[bytes]) -> Iterator[bytes]:
    started = time.monotonic()
    received = 0
    for chunk in chunks:
        received += len(chunk)
        if received < (time.monotonic() - started - GRACE_S) * FLOOR:
            raise RemoteError(f"less than {FLOOR // 1000} kB/s")
        yield chunk
