"""Object stores: S3 and what speaks like it, Google Cloud Storage, Azure. Credentials, region and endpoint come from
each one's own environment variables. The library is the extra `remote`; only who needs a store imports this."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import obstore
from obstore.exceptions import (
    BaseError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
    UnauthenticatedError,
)
from obstore.store import ObjectStore, from_url

ABSENT = (NotFoundError, FileNotFoundError)
"""The library raises the one or the other, as its version likes."""
CHANGED = PreconditionError


class ObjectError(Exception):
    """What is wrong, in a few words of ours: the library's own repeat requests and answers."""


def open_store(url: str, *, allow_http: bool = False) -> ObjectStore:
    """The bucket and prefix of `url`; `allow_http` is for a server of one's own that speaks no TLS.

    Raises ObjectError."""
    with told():
        return from_url(
            url,
            client_options={
                "connect_timeout": "2s",
                "read_timeout": "10s",
                "timeout": "1h",
                "allow_http": allow_http,
            },
            retry_config={"max_retries": 1, "retry_timeout": timedelta(seconds=10)},
        )


@contextmanager
def told() -> Iterator[None]:
    """Raises ObjectError for whatever the library raises."""
    try:
        yield
    except (PermissionDeniedError, PermissionError):
        raise ObjectError("permission denied") from None
    except UnauthenticatedError:
        raise ObjectError("the credentials are missing or refused") from None
    except BaseError as error:
        status = re.search(r"\b[45]\d\d\b(?= [A-Z])", str(error))
        raise ObjectError(f"status {status[0]}" if status else "the object store cannot be asked") from None


__all__ = ["ABSENT", "CHANGED", "ObjectError", "obstore", "open_store", "told"]
