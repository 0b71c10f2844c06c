"""One result on its way to a remote: bytes first, then the entry that names them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from anfbuild.engine.files import hash_regular
from anfbuild.engine.remote.entry import decode, encode
from anfbuild.engine.remote.remote import Remote, WrongBytesError
from anfbuild.engine.result import Result
from anfbuild.engine.store import Damaged, Store


@dataclasses.dataclass(frozen=True)
class Sent:
    """What became of it."""

    entry: str
    """sent; present: the remote has it; different: the remote has other outputs under this key, which stay."""
    blobs: int = 0
    """How many were sent, with `size` bytes in all."""
    size: int = 0


def send(remote: Remote, store: Store, result: Result, *, doubted: Collection[str] = ()) -> Sent:
    """Bring `result` to `remote`, as far as it is not there.

    `doubted` are SHA-256 of bytes that the remote was found not to have, whatever it says: they are sent again, and an
    entry of other outputs that names one of them is replaced. Raises RemoteError; Damaged: the bytes are not here.
    """
    there = _entry(remote, result.key)
    if there is not None and there.files != result.files:
        if not any(sha in doubted for sha, _ in there.files.values()):
            return Sent("different")
        there = None
    wanted = [
        (sha, size)
        for sha, size in dict.fromkeys(result.files.values())
        if sha in doubted or not remote.has_blob(sha, size)
    ]
    for sha, size in wanted:
        _send_blob(remote, store, sha, size)
    if there is None:
        remote.put_action(result.key, encode(result))
    return Sent("sent" if there is None or wanted else "present", len(wanted), sum(size for _, size in wanted))


def _entry(remote: Remote, key: str) -> Result | None:
    """What the remote has under `key`; nothing good is as little as nothing."""
    try:
        data = remote.get_action(key)
        return None if data is None else decode(key, data)
    except (WrongBytesError, ValueError):
        return None


def _send_blob(remote: Remote, store: Store, sha: str, size: int) -> None:
    path = store.blob(sha)
    try:
        intact = path.stat().st_size == size and hash_regular(path) == sha
    except OSError as error:
        raise Damaged(sha) from error
    if not intact:
        store.quarantine(path)
        raise Damaged(sha)
    remote.put_blob(sha, path)
