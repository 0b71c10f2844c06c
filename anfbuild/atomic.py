"""Files that appear whole or not at all, whoever is killed meanwhile: the one place that makes them
(but for the worker, which imports nothing of ours before it is confined)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A name beside `path` to write to: it takes the place of `path` when the block ends, and is gone if that fails.

    Raises OSError, which names `path` where the name beside it could not be used.
    """
    partial = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        yield partial
        partial.replace(path)
    except OSError as error:
        if error.filename == str(partial):
            error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # the disk that failed the block; what failed is told already
            partial.unlink(missing_ok=True)


def is_partial(path: Path) -> bool:
    """Whether a file is one that its writer had not finished."""
    return path.name.startswith(".") and path.name.endswith(".partial")
