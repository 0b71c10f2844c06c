"""From settings to a remote: the table of kinds."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path

from anfbuild.engine.remote.bounded import Bounded
from anfbuild.engine.remote.remote import Remote
from anfbuild.engine.remote.settings import HTTP, OBJECTS, URL, Settings
from anfbuild.errors import RecipeError


def connect(settings: Settings, environ: Mapping[str, str]) -> Remote:
    """The remote of `settings`; nothing is asked of it yet. `environ` may hold secrets, which go nowhere else.

    Raises RecipeError: credentials that must not be sent, a kind whose library is missing.
    """
    return Bounded(settings.name, _opener(settings, environ))


def _opener(settings: Settings, environ: Mapping[str, str]) -> Callable[[], Remote]:
    if settings.scheme in HTTP:
        from anfbuild.engine.remote.credentials import authorization

        header = authorization(settings.url, environ)
        return lambda: _http(settings, header)
    if settings.scheme in OBJECTS:
        if importlib.util.find_spec("obstore") is None:
            raise RecipeError(
                f"a remote of kind {settings.scheme}:// needs the package obstore, which is not installed",
                where=URL,
                remedy="pip install 'anfbuild[remote]'",
            )
        plain = environ.get("AWS_ALLOW_HTTP", "").lower() == "true"
        return lambda: _objects(settings, allow_http=plain)
    return lambda: _folder(settings)


def _http(settings: Settings, header: str | None) -> Remote:
    from anfbuild.engine.remote.http import HttpRemote

    return HttpRemote(settings.url, settings.name, header)


def _objects(settings: Settings, *, allow_http: bool) -> Remote:
    from anfbuild.engine.remote.objects import ObjectRemote

    return ObjectRemote(settings.url, allow_http=allow_http)


def _folder(settings: Settings) -> Remote:
    from anfbuild.engine.remote.folder import FolderRemote

    return FolderRemote(Path(settings.url))
