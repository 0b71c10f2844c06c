"""A remote in an object store: S3 and what speaks like it, Google Cloud Storage, Azure. Credentials, region and
endpoint come from each one's own environment variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import obstore
from obstore.exceptions import BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import from_url

from anfbuild.engine.remote.remote import RemoteError, WrongBytesError, collect, receive

_ABSENT = (NotFoundError, FileNotFoundError)
"""The library raises the one or the other, as its version likes."""


class ObjectRemote:
    """The bucket and prefix of `url`; `allow_http` is for a server of one's own that speaks no TLS."""

    def __init__(self, url: str, *, allow_http: bool = False) -> None:
        self._url = url
        with _told():
            self._store = from_url(
                url,
                client_options={
                    "connect_timeout": "2s",
                    "read_timeout": "10s",
                    "timeout": "1h",
                    "allow_http": allow_http,
                },
                retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=10)},
            )

    @property
    def name(self) -> str:
        return self._url

    def get_action(self, key: str) -> bytes | None:
        with _told():
            try:
                return collect(bytes(chunk) for chunk in obstore.get(self._store, f"ac/{key}"))
            except _ABSENT:
                return None

    def put_action(self, key: str, data: bytes) -> None:
        with _told():
            obstore.put(self._store, f"ac/{key}", data, use_multipart=False)

    def has_blob(self, sha: str, size: int) -> bool:
        with _told():
            try:
                return bool(obstore.head(self._store, f"cas/{sha}")["size"] == size)
            except _ABSENT:
                return False

    def get_blob(self, sha: str, size: int, destination: Path) -> bool:
        with _told():
            try:
                answer = obstore.get(self._store, f"cas/{sha}")
            except _ABSENT:
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
    """The library's errors in a few words of ours: its own repeat requests and answers."""
    try:
        yield
    except (PermissionDeniedError, PermissionError):
        raise RemoteError("permission denied") from None
    except UnauthenticatedError:
        raise RemoteError("the credentials are missing or refused") from None
    except BaseError as error:
        status = re.search(r"\b[45]\d\d\b(?= [A-Z])", str(error))
        raise RemoteError(f"status {status[0]}" if status else "the object store cannot be asked") from None
