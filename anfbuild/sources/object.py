"""Kind `object`: one object of an object store, s3://, gs:// or az://, pinned by its SHA-256.

Credentials, region and endpoint come from each store's own environment variables, and from nowhere else.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anfbuild.errors import StepError
from anfbuild.sources.addresses import check_object
from anfbuild.sources.downloads import Cut, Downloads, Opened, fetch_pinned

_CHUNK = 1 << 20
_CREDENTIALS = "Look at the address, and at the store's own environment variables for credentials, region and endpoint."


def fetch_object(url: str, sha256: str | None, folder: Path, downloads: Downloads = Downloads()) -> Path:
    """Download the object `url` into `folder`, under the last part of its key, verified against `sha256`.

    Raises RecipeError for a malformed address and for a missing digest, naming it; StepError where the extra is not
    installed, and for what cannot be had.
    """
    bucket, key = check_object(url)
    if importlib.util.find_spec("obstore") is None:
        raise StepError(
            f"{url} needs the package obstore, which is not installed",
            where="source.url",
            remedy="Run `pip install 'anfbuild[remote]'`.",
        )
    return fetch_pinned(url, _Object(bucket, key).open, sha256, folder / key.rpartition("/")[2], downloads)


class _Object:
    def __init__(self, bucket: str, key: str) -> None:
        from anfbuild import objects

        self._objects = objects
        self._key = key
        plain = os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true"
        try:
            self._store = objects.open_store(bucket, allow_http=plain)
        except objects.ObjectError as error:
            raise StepError(f"{bucket} cannot be asked: {error}", remedy=_CREDENTIALS) from error

    @contextmanager
    def open(self, position: int, tag: str | None) -> Iterator[Opened]:
        """Ask for the object from `position` on, if `tag` still names it, else for all of it. Raises Cut."""
        answer = self._ask(position, tag)
        yield Opened(answer.range[0], answer.meta["size"], answer.meta.get("e_tag"), self._chunks(answer))

    def _ask(self, position: int, tag: str | None) -> Any:
        options: dict[str, Any] = {"range": {"offset": position}, "if_match": tag} if position and tag else {}
        try:
            with self._objects.told():
                try:
                    return self._objects.obstore.get(self._store, self._key, options=options)
                except self._objects.CHANGED:
                    return self._objects.obstore.get(self._store, self._key)
                except self._objects.ABSENT:
                    raise Cut("there is no such object", final=True, remedy="Correct the bucket and the key.") from None
        except self._objects.ObjectError as error:
            final = "permission" in str(error) or "credentials" in str(error)
            raise Cut(str(error), final=final, remedy=_CREDENTIALS) from None

    def _chunks(self, answer: Any) -> Iterator[bytes]:
        try:
            with self._objects.told():
                for chunk in answer.stream(_CHUNK):
                    yield bytes(chunk)
        except self._objects.ObjectError as error:
            raise Cut(str(error)) from None
