"""Kind `https`: one file behind an address, pinned by its SHA-256. A download that is cut goes on where it stopped.

Only the standard library is used: the proxy and the certificates are those of the system and its environment.
"""

from __future__ import annotations

import http.client
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from pathlib import Path
from typing import IO, Any

from anfbuild.errors import AnfbuildError, StepError
from anfbuild.sources.addresses import check_url
from anfbuild.sources.downloads import CONNECT, Cut, Downloads, Limits, Opened, Partial, fetch_pinned, receive

_CHUNK = 1 << 20
_LATER = (408, 425, 429, 500, 502, 503, 504)
"""Answers after which it is worth to ask again."""


def fetch_url(url: str, sha256: str | None, folder: Path, downloads: Downloads = Downloads()) -> Path:
    """Download `url` into `folder`, under the last part of its path, verified against `sha256`.

    The file appears whole and verified or not at all. Raises RecipeError for an address that `check_url` refuses and
    for a missing digest, naming that of what was downloaded; StepError for what cannot be had: no such page, another
    digest, a redirect to an unprotected address, a body without end, a server that does not answer.
    """
    name = check_url(url)
    return fetch_pinned(url, Web(url, downloads.limits).open, sha256, folder / name, downloads)


def download(url: str, path: Path, downloads: Downloads) -> str:
    """Write what is behind `url` to `path`; its SHA-256. After a cut, only the rest is asked for."""
    return receive(url, Web(url, downloads.limits).open, Partial(path, kept=False), downloads)


class Web:
    """A file behind an address. `authorization` goes to the host of `url` alone, whatever it redirects to; `remedies`
    are for answers by their code."""

    def __init__(
        self, url: str, limits: Limits, *, authorization: str | None = None, remedies: Mapping[int, str] | None = None
    ) -> None:
        self._url = url
        self._idle_s = limits.idle_s
        self._authorization = authorization
        self._remedies = remedies or {}
        self._opener = urllib.request.build_opener(_Redirects())

    @contextmanager
    def open(self, position: int, tag: str | None) -> Iterator[Opened]:
        """Ask for the file from `position` on, if `tag` still names it. Raises Cut."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "anfbuild"}
        if position and tag:
            headers |= {"Range": f"bytes={position}-", "If-Range": tag}
        request = urllib.request.Request(self._url, headers=headers)
        if self._authorization:
            request.add_unredirected_header(_AUTHORIZATION, self._authorization)
        with self._answer(request) as response:
            start = _start(response)
            left = _length(response.headers)
            total = None if left is None else start + left
            yield Opened(start, total, _strong_tag(response.headers), _chunks(response))

    def _answer(self, request: urllib.request.Request) -> Any:
        try:
            return self._opener.open(request, timeout=self._idle_s)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and request.has_header("Range"):  # there is no rest: begin anew
                request.remove_header("Range")
                request.remove_header("If-range")
                return self._answer(request)
            raise Cut(
                f"the server answers {error.code} {error.reason}",
                final=error.code not in _LATER,
                remedy=self._remedies.get(error.code, CONNECT),
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise _broken(error) from error


_AUTHORIZATION = "Authorization"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to protected addresses alone, and takes credentials to no other host."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        try:
            check_url(newurl)
        except AnfbuildError as error:
            raise StepError(
                f"{req.full_url} redirects to {_shown(newurl)}, which is refused",
                remedy="Name an address that is served by https, without user name.",
            ) from error
        following = super().redirect_request(req, fp, code, msg, headers, newurl)
        secret = req.unredirected_hdrs.get(_AUTHORIZATION)
        if following is not None and secret and _origin(newurl) == _origin(req.full_url):
            following.add_unredirected_header(_AUTHORIZATION, secret)
        return following


def _shown(url: str) -> str:
    """An address that somebody else gave, without what may be a secret in it."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urllib.parse.urlsplit(url)
    return parts.scheme, parts.hostname, parts.port


def _chunks(response: Any) -> Iterator[bytes]:
    try:
        while chunk := response.read(_CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise _broken(error) from error


def _broken(error: Exception) -> Cut:
    return Cut(str(getattr(error, "reason", error)) or type(error).__name__)


def _start(response: Any) -> int:
    """The position in the file at which the body starts."""
    if response.status != 206:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if found is None:
        raise Cut("the server does not say which part of the file it sends")
    return int(found.group(1))


def _strong_tag(headers: Message) -> str | None:
    tag = headers.get("ETag")
    return None if tag is None or tag.startswith("W/") else tag


def _length(headers: Message) -> int | None:
    text = headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None
