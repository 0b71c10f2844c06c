"""A remote in an object store: S3 and what speaks like it, Google Cloud Storage, Azure. Credentials, region and
endpoint come from each one's own environment variables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anfbuild.engine.remote.remote import RemoteError, WrongBytesError, collect, receive
from anfbuild.objects import ABSENT, ObjectError, obstore, open_store, told


class ObjectRemote:
    """The bucket and prefix of `url`; `allow_http` is for a server of one's own that speaks no TLS."""

    def __init__(self, url: str, *, allow_http: bool = False) -> None:
        self._url = url
        with _told():
            self._store = open_store(url, allow_http=allow_http)

    @property
    def name(self) -> str:
        return self._url

    def get_action(self, key: str) -> bytes | None:
        with _told():
            try:
                return collect(bytes(chunk) for chunk in obstore.get(self._store, f"ac/{key}"))
            except ABSENT:
                return None

    def put_action(self, key: str, data: bytes) -> None:
        with _told():
            obstore.put(self._store, f"ac/{key}", data, use_multipart=False)

    def has_blob(self, sha: str, size: int) -> bool:
        with _told():
            try:
                return bool(obstore.head(self._store, f"cas/{sha}")["size"] == size)
            except ABSENT:
                return False

    def get_blob(self, sha: str, size: int, destination: Path) -> bool:
        with _told():
            try:
                answer = obstore.get(self._store, f"cas/{sha}")
            except ABSENT:
                return False
            if answer.meta["size"] != size:
                raise WrongBytesError(f"bytes that are not those of {sha[:12]}")
            receive((bytes(chunk) for chunk in answer), sha, size, destination)
            return True

    def put_blob(self, sha: str, path: Path) -> None:
        with _told():
            obstore.put(self._store, f"cas/{sha}", path)


@contextmanager
def _told() -> Iterator[None]:
    try:
        with told():
            yield
    except ObjectError as error:
        raise RemoteError(str(error)) from None
