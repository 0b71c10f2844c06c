"""Who asks an HTTP remote: $ANFBUILD_REMOTE_TOKEN, or the host's entry of a netrc file.

What they hold is in a header of a request and nowhere else: in no message, file, setting or pickled object.
"""

from __future__ import annotations

import base64
import ipaddress
import netrc
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from anfbuild.errors import RecipeError

TOKEN = "ANFBUILD_REMOTE_TOKEN"


def authorization(url: str, environ: Mapping[str, str]) -> str | None:
    """The Authorization header for `url`, or None.

    Raises RecipeError: a secret that would go over plain HTTP to another machine, one that no header can hold, an
    unreadable netrc file.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    if token := environ.get(TOKEN, ""):
        if not re.fullmatch(r"[!-~]+", token):
            raise RecipeError("the token holds a space or a letter that no header can", where=TOKEN)
        header, where = f"Bearer {token}", TOKEN
    elif found := _netrc(host, environ):
        user, password, where = found
        header = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
    else:
        return None
    if parts.scheme != "https" and not _is_loopback(host):
        raise RecipeError(
            f"credentials for {host!r} would be sent over plain HTTP, for all on the way to read",
            where=where,
            remedy="Use an https:// URL, or remove the credentials.",
        )
    return header


def _netrc(host: str, environ: Mapping[str, str]) -> tuple[str, str, str] | None:
    """User, password and the file they are from; its `default` is nobody's that wants to meet a build's remote."""
    given = environ.get("NETRC")
    path = Path(given) if given else Path("~/.netrc").expanduser()
    if not path.is_file():
        return None
    try:
        entry = netrc.netrc(str(path)).hosts.get(host)
    except netrc.NetrcParseError as error:  # its text holds a part of the file
        raise RecipeError(f"line {error.lineno} cannot be read", where=str(path), remedy="Correct the file.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError("the file cannot be read", where=str(path), remedy="Correct its rights.") from error
    return (entry[0], entry[2] or "", str(path)) if entry else None


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
