"""Which remote a build uses: $ANFBUILD_REMOTE and its kin, or the command line.

Settings say where, never who: secrets stay in the environment or in a netrc file, and are read where a remote is
opened. So settings may be sent to a worker process. Nothing of them enters a key.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from anfbuild.engine.files import at_home
from anfbuild.errors import RecipeError

URL = "ANFBUILD_REMOTE"
WRITE = "ANFBUILD_REMOTE_WRITE"
WAIT = "ANFBUILD_REMOTE_WAIT"

HTTP = ("http", "https")
OBJECTS = ("s3", "gs", "az")
CHOICES = ("http://HOST/PREFIX", "https://HOST/PREFIX", "s3://BUCKET/PREFIX", "gs://...", "az://...", "a folder")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
"""Of two letters at least: `C:` is a drive."""


@dataclasses.dataclass(frozen=True)
class Settings:
    """A remote, and what may be done with it."""

    url: str
    """Without user, password, query or fragment; of a folder, its absolute path."""
    write: bool = False
    wait_s: float = 60.0
    """How long the end of a build waits for what is still being sent."""

    @property
    def scheme(self) -> str:
        """`file` for a folder."""
        found = _SCHEME.match(self.url)
        return found[1] if found else "file"

    @property
    def name(self) -> str:
        """What messages call it: the server, without what follows, or the bucket or folder."""
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.url)) if self.scheme in HTTP else self.url


def read(environ: Mapping[str, str], project: Path, *, url: str | None = None, push: bool = False) -> Settings | None:
    """The settings in `environ`, where the command line's `url` and `push` come first; None: no remote is asked for.

    A relative folder starts at `project`. Raises RecipeError: no remote to push to, or a value that cannot be.
    """
    where = URL if url is None else "--remote"
    text = (environ.get(URL, "") if url is None else url).strip()
    write = _switch(environ, WRITE) or push
    wait_s = _seconds(environ)
    if not text:
        if push:
            raise RecipeError(
                "there is no remote to push to",
                where="--push",
                remedy=f"Set {URL}, or add --remote URL.",
                choices=CHOICES,
            )
        return None
    return Settings(_checked(text, where, project), write, wait_s)


def _checked(text: str, where: str, project: Path) -> str:
    found = _SCHEME.match(text)
    if found is None:
        return str((project / at_home(text)).absolute())
    if (scheme := found[1].lower()) not in (*HTTP, *OBJECTS, "file"):
        raise RecipeError(f"there is no kind of remote {scheme!r}", where=where, choices=CHOICES)
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError as error:  # its text may hold a part of the URL, and so a password
        raise RecipeError("this is no URL", where=where, choices=CHOICES) from error
    _refuse_secrets(parts, where)
    if scheme == "file":
        return _folder(parts, where)
    if not parts.hostname:
        raise RecipeError(
            f"a URL that starts with {scheme}: names a {'host' if scheme in HTTP else 'bucket'}",
            where=where,
            choices=CHOICES,
        )
    return parts._replace(scheme=scheme).geturl().rstrip("/")


def _refuse_secrets(parts: SplitResult, where: str) -> None:
    """A URL is shown, logged and seen by all who list processes. The error does not repeat it."""
    if "@" in parts.netloc:
        raise RecipeError(
            "the URL holds a user or a password",
            where=where,
            remedy="Remove them; put a line `machine HOST login USER password PASSWORD` into ~/.netrc, or set "
            "ANFBUILD_REMOTE_TOKEN.",
        )
    if parts.query or parts.fragment:
        raise RecipeError("the URL has a query or a fragment", where=where, remedy="Remove what follows '?' or '#'.")


def _folder(parts: SplitResult, where: str) -> str:
    from urllib.request import url2pathname

    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise RecipeError("a file: URL names an absolute path", where=where, remedy="Write file:///FOLDER.")
    return url2pathname(parts.path)


def _switch(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "")
    if value not in ("", "0", "1"):
        raise RecipeError(f"{value!r} is neither on nor off", where=name, choices=["0", "1"])
    return value == "1"


def _seconds(environ: Mapping[str, str]) -> float:
    value = environ.get(WAIT, "")
    if not value:
        return Settings.wait_s
    if not re.fullmatch(r"\d{1,6}", value):
        raise RecipeError(f"{value!r} is no number of seconds", where=WAIT, remedy="Write a whole number, such as 60.")
    return float(value)
