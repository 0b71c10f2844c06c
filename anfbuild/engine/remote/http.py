"""A remote behind HTTP: bazel-remote's own protocol, which any server that takes PUT speaks as well.

    GET, PUT, HEAD  PREFIX/ac/<key>   PREFIX/cas/<sha256>

No redirect is followed: what it leads to is not what the user named, and must not see the user's credentials.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    IncompleteRead,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from anfbuild.engine.remote.remote import CHUNK, MAX_ENTRY, RemoteError, WrongBytesError, collect, receive

CONNECT_S = 2.0
READ_S = 10.0
"""Without a byte."""

_CONNECTIONS = 8
"""That are kept; as many as threads that ask."""

_JSON = "application/json"


class HttpRemote:
    """The server of `url`, asked as `authorization` says. Proxies are those that the environment names."""

    def __init__(self, url: str, name: str, authorization: str | None) -> None:
        self._url = url
        self._name = name
        self._headers = {"Authorization": authorization} if authorization else {}
        self._pool = _pool(url)

    @property
    def name(self) -> str:
        return self._name

    def get_action(self, key: str) -> bytes | None:
        with self._ask("GET", f"ac/{key}", {"Accept": _JSON}) as response:
            return collect(_body(response, MAX_ENTRY + 1)) if _is_there(response) else None

    def put_action(self, key: str, data: bytes) -> None:
        self._put(f"ac/{key}", data, {"Content-Type": _JSON})

    def has_blob(self, sha: str, size: int) -> bool:
        with self._ask("HEAD", f"cas/{sha}") as response:
            return _is_there(response) and response.headers.get("Content-Length", str(size)) == str(size)

    def get_blob(self, sha: str, size: int, destination: Path) -> bool:
        with self._ask("GET", f"cas/{sha}") as response:
            if not _is_there(response):
                return False
            if response.headers.get("Content-Length", str(size)) != str(size):
                raise WrongBytesError(f"bytes that are not those of {sha[:12]}")
            receive(_body(response, size), sha, size, destination)
            return True

    def put_blob(self, sha: str, path: Path) -> None:
        with path.open("rb") as file:
            headers = {"Content-Type": "application/octet-stream", "Content-Length": str(path.stat().st_size)}
            self._put(f"cas/{sha}", file, headers)

    def _put(self, place: str, body: bytes | IO[bytes], headers: dict[str, str]) -> None:
        with self._ask("PUT", place, headers, body) as response:
            _refuse(response, 200, 201, 204)

    @contextmanager
    def _ask(
        self, method: str, place: str, headers: dict[str, str] | None = None, body: bytes | IO[bytes] | None = None
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """The response, its body unread."""
        # urllib3 bounds each piece that is sent by the time for connecting, which a busy server may need more than
        connect = CONNECT_S if body is None else READ_S
        try:
            response = self._pool.request(
                method,
                f"{self._url}/{place}",
                headers={**self._headers, "Accept-Encoding": "identity", "User-Agent": "anfbuild", **(headers or {})},
                body=body,
                timeout=urllib3.Timeout(connect=connect, read=READ_S),
                redirect=False,
                retries=False,
                preload_content=False,
                decode_content=False,
            )
            with response:  # whose connection is closed at the end, unless it could be handed back before
                yield response
                _finish(response)
        except (HTTPError, OSError) as error:
            raise RemoteError(_reason(error)) from None


def _finish(response: urllib3.BaseHTTPResponse) -> None:
    """Read what may be left of a page that explains an error, so that the connection can be used again."""
    if response.status != HTTPStatus.OK or response.length_remaining == 0:
        for _ in _body(response, CHUNK):
            pass


def _pool(url: str) -> urllib3.PoolManager:
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.hostname or ""):
        return urllib3.PoolManager(maxsize=_CONNECTIONS)
    try:
        user = urlsplit(proxy)
        headers = (
            urllib3.make_headers(proxy_basic_auth=f"{user.username}:{user.password or ''}") if user.username else None
        )
        return urllib3.ProxyManager(proxy, maxsize=_CONNECTIONS, proxy_headers=headers)
    except (HTTPError, ValueError):  # their texts may hold the proxy's password
        raise RemoteError(f"the proxy for {parts.scheme} that the environment names cannot be used") from None


def _is_there(response: urllib3.BaseHTTPResponse) -> bool:
    if response.status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        return False
    _refuse(response, HTTPStatus.OK)
    return True


def _refuse(response: urllib3.BaseHTTPResponse, *allowed: int) -> None:
    if response.status in allowed:
        return
    try:
        raise RemoteError(f"{response.status} {HTTPStatus(response.status).phrase}")
    except ValueError:
        raise RemoteError(f"status {response.status}") from None


def _body(response: urllib3.BaseHTTPResponse, limit: int) -> Iterator[bytes]:
    """What comes, as it comes, and no more than `limit` bytes of it."""
    while limit > 0 and (chunk := response.read1(min(CHUNK, limit))):
        limit -= len(chunk)
        yield chunk


def _reason(error: BaseException) -> str:
    """In a few words of ours: a text of the library may hold a URL, one of the server anything."""
    if isinstance(error, ProxyError):
        return f"proxy: {_reason(error.original_error)}"
    if isinstance(error, NameResolutionError):
        return "the host's name is not known"
    if isinstance(error, NewConnectionError):
        cause = error.__cause__ or error.__context__
        return (cause.strerror or "no connection").lower() if isinstance(cause, OSError) else "no connection"
    if isinstance(error, ConnectTimeoutError):
        return f"no connection within {CONNECT_S:.0f} s"
    if isinstance(error, ReadTimeoutError | TimeoutError):
        return f"nothing came for {READ_S:.0f} s"
    if isinstance(error, SSLError):
        return "no secure connection (TLS)"
    if isinstance(error, IncompleteRead | ProtocolError):
        return "the connection broke"
    return error.strerror.lower() if isinstance(error, OSError) and error.strerror else type(error).__name__
