"""Kind `huggingface`: one file of a repository of the Hugging Face Hub, or of a server like it, at a commit.

$HF_ENDPOINT names another server. The token is $HF_TOKEN's or that of the file where the hub's own tools keep it; it is
in a header of requests to that server and nowhere else.
"""

from __future__ import annotations

import os
import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path

from anfbuild.errors import RecipeError
from anfbuild.sources.addresses import check_repository, check_url
from anfbuild.sources.downloads import Downloads, fetch_pinned
from anfbuild.sources.https import Web
from anfbuild.sources.wheel import parse_member

ENDPOINT = "HF_ENDPOINT"
TOKEN = "HF_TOKEN"
_HUB = "https://huggingface.co"


def fetch_from_hub(
    repo: str, revision: str, file: str, sha256: str | None, folder: Path, downloads: Downloads = Downloads()
) -> Path:
    """Download `file` of `repo` (`owner/name`) at the commit `revision` into `folder`, under its base name.

    Raises RecipeError for malformed values, an unprotected endpoint, a token that no header can hold, and for a missing
    digest, naming it; StepError for what cannot be had.
    """
    check_repository(repo, revision)
    name = parse_member(file)
    endpoint = (os.environ.get(ENDPOINT) or _HUB).rstrip("/")
    try:
        check_url(endpoint)
    except RecipeError as error:
        raise RecipeError(error.what, where=ENDPOINT, remedy=error.remedy) from None
    url = f"{endpoint}/{repo}/resolve/{revision}/{urllib.parse.quote(file)}"
    token = _token(os.environ)
    allow = f"Set {TOKEN} to a token that may read {repo}, and accept the model's terms on the hub where it has any."
    web = Web(
        url,
        downloads.limits,
        authorization=f"Bearer {token}" if token else None,
        remedies={
            401: allow,
            403: allow,
            404: f"Correct source.repo, source.revision or source.file. What is private is not found without {TOKEN}.",
        },
    )
    return fetch_pinned(f"{file} of {repo} at {revision[:12]}", web.open, sha256, folder / name, downloads)


def _token(environ: Mapping[str, str]) -> str | None:
    """Raises RecipeError, which does not show it, for a token that no header can hold."""
    token, where = environ.get(TOKEN, "").strip(), TOKEN
    if not token:
        path = _token_file(environ)
        where = str(path)
        try:
            token = path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise RecipeError("the token's file cannot be read", where=where, remedy="Correct its rights.") from error
    if token and not re.fullmatch(r"[!-~]+", token):
        raise RecipeError("the token holds a space or a letter that no header can", where=where)
    return token or None


def _token_file(environ: Mapping[str, str]) -> Path:
    """Where the hub's own tools keep it."""
    if given := environ.get("HF_TOKEN_PATH"):
        return Path(given).expanduser()
    cache = environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(environ.get("HF_HOME") or f"{cache}/huggingface").expanduser() / "token"
