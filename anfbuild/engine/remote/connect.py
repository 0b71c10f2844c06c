"""From settings to a remote: the table of kinds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from anfbuild.engine.remote.bounded import Bounded
from anfbuild.engine.remote.remote import Remote, RemoteError
from anfbuild.engine.remote.settings import HTTP, OBJECTS, URL, Settings
from anfbuild.errors import RecipeError


def connect(settings: Settings, environ: Mapping[str, str]) -> Remote:
    """The remote of `settings`; nothing is asked of it yet. `environ` may hold secrets, which go nowhere else.

    Raises RecipeError: credentials that must not be sent, a proxy that is none, a kind whose library is missing.
    """
    try:
        return Bounded(_open(settings, environ))
    except RemoteError as error:
        raise RecipeError(f"remote {settings.name} cannot be used: {error}", where=URL) from error


def _open(settings: Settings, environ: Mapping[str, str]) -> Remote:
    if settings.scheme in HTTP:
        from anfbuild.engine.remote.credentials import authorization
        from anfbuild.engine.remote.http import HttpRemote

        return HttpRemote(settings.url, settings.name, authorization(settings.url, environ))
    if settings.scheme in OBJECTS:
        try:
            from anfbuild.engine.remote.objects import ObjectRemote
        except ImportError as error:
            raise RecipeError(
                f"a remote of kind {settings.scheme}:// needs the package obstore, which is not installed",
                where=URL,
                remedy="pip install 'anfbuild[remote]'",
            ) from error
        return ObjectRemote(settings.url)
    from anfbuild.engine.remote.folder import FolderRemote

    return FolderRemote(Path(settings.url))
