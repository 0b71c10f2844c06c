"""Kind `https`: one file behind an address, pinned by its SHA-256. A download that is cut goes on where it stopped.

Only the standard library is used: the proxy and the certificates are those of the system and its environment.
"""

from __future__ import annotations

import hashlib
import http.client
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from email.message import Message
from pathlib import Path
from typing import IO, Any, NamedTuple

from anfbuild.errors import AnfbuildError, RecipeError, StepError
from anfbuild.sources.addresses import check_url

MOST_BYTES = 64 * 10**9
"""Bound on one download."""
TIMEOUT_S = 6 * 3600.0
"""Bound on the whole of one download, in seconds."""
IDLE_S = 60.0
"""Bound on the wait for the next bytes, in seconds."""

_ATTEMPTS = 6
_CHUNK = 1 << 20
_LATER = (408, 425, 429, 500, 502, 503, 504)
"""Answers after which it is worth to ask again."""
_CONNECT = "Look at the address and the connection, and run again. What is in the store is not fetched again."


class Limits(NamedTuple):
    """What bounds a download."""

    most_bytes: int = MOST_BYTES
    timeout_s: float = TIMEOUT_S
    idle_s: float = IDLE_S
    pause_s: float = 2.0
    """Before the second attempt; each later one waits longer by as much."""


def fetch_url(url: str, sha256: str | None, folder: Path, limits: Limits = Limits()) -> Path:  # noqa: B008  # immutable
    """Download `url` into `folder`, under the last part of its path, verified against `sha256`.

    The file appears whole and verified or not at all. Raises RecipeError for an address that `check_url` refuses and
    for a missing digest, naming that of what was downloaded; StepError for what cannot be had: no such page, another
    digest, a redirect to an unprotected address, a body without end, a server that does not answer.
    """
    name = check_url(url)
    folder.mkdir(parents=True, exist_ok=True)
    part = folder / f".{name}.part"
    try:
        found = download(url, part, limits)
        if sha256 is None:
            raise RecipeError(
                f"{url} is not pinned", where="source.sha256", remedy=f"Write its digest: sha256: {found}"
            )
        if found != sha256.lower():
            raise StepError(
                f"{url} is not the pinned file: its SHA-256 is {found}, expected {sha256.lower()}",
                remedy="The server gives another file than the recipe was written for: ask why before you change it.",
            )
        return part.replace(folder / name)
    finally:
        part.unlink(missing_ok=True)


def download(url: str, path: Path, limits: Limits) -> str:
    """Write what is behind `url` to `path`; its SHA-256. After a cut, only the rest is asked for."""
    end = time.monotonic() + limits.timeout_s
    progress = _Progress(url, limits, end)
    failure = ""
    with path.open("wb") as file:
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(min(attempt * limits.pause_s, max(end - time.monotonic(), 0)))
            try:
                if progress.receive(file):
                    return progress.digest.hexdigest()
                failure = f"the connection was cut after {progress.received} bytes"
            except urllib.error.HTTPError as error:
                failure = f"the server answers {error.code} {error.reason}"
                if error.code not in _LATER:
                    break
            except (OSError, http.client.HTTPException) as error:
                failure = str(getattr(error, "reason", error)) or type(error).__name__
    raise StepError(f"{url} cannot be fetched: {failure}", remedy=_CONNECT)


class _Progress:
    """What has been received of one file so far."""

    def __init__(self, url: str, limits: Limits, end: float) -> None:
        self.url = url
        self.digest = hashlib.sha256()
        self.received = 0
        self._limits = limits
        self._end = end
        self._tag: str | None = None
        """What the server calls this version of the file: without it, a rest may be that of another."""
        self._opener = urllib.request.build_opener(_Redirects())

    def receive(self, file: IO[bytes]) -> bool:
        """Receive as much as comes. False where the connection ends before the file does."""
        headers = {"Accept-Encoding": "identity", "User-Agent": "anfbuild"}
        if self.received and self._tag:
            headers |= {"Range": f"bytes={self.received}-", "If-Range": self._tag}
        request = urllib.request.Request(self.url, headers=headers)
        with self._opener.open(request, timeout=self._limits.idle_s) as response:
            if not self._continues(response):
                file.seek(0)
                file.truncate()
                self.digest, self.received = hashlib.sha256(), 0
            self._tag = _strong_tag(response.headers)
            left = _length(response.headers)
            total = None if left is None else self.received + left
            if total is not None and total > self._limits.most_bytes:
                raise self._too_much(f"it has {total} bytes")
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                self.digest.update(chunk)
                self.received += len(chunk)
                if self.received > self._limits.most_bytes:
                    raise self._too_much("it does not end")
                if time.monotonic() > self._end:
                    raise StepError(
                        f"{self.url} was not downloaded within {self._limits.timeout_s:g} s", remedy=_CONNECT
                    )
        return total is None or self.received == total

    def _continues(self, response: Any) -> bool:
        """Whether the body goes on where the last one stopped."""
        if response.status != 206:
            return False
        found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        return found is not None and int(found.group(1)) == self.received

    def _too_much(self, why: str) -> StepError:
        most = self._limits.most_bytes
        return StepError(f"{self.url} is larger than {most} bytes, the most allowed: {why}", remedy=_CONNECT)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to protected addresses alone."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        try:
            check_url(newurl)
        except AnfbuildError as error:
            raise StepError(
                f"{req.full_url} redirects to {newurl}, which is refused: {error.what}",
                remedy="Name an address that is served by https.",
            ) from error
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _strong_tag(headers: Message) -> str | None:
    tag = headers.get("ETag")
    return None if tag is None or tag.startswith("W/") else tag


def _length(headers: Message) -> int | None:
    text = headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None
