"""Files beside a recipe that a finished build writes: its lock, its placement contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from anfbuild.atomic import replacing
from anfbuild.errors import StepError


@contextmanager
def written(path: Path, what: str) -> Iterator[Path]:
    """The place for the new bytes of `path`, which it then replaces at once. Raises StepError, calling it `what`, where
    it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            yield partial
    except OSError as error:
        raise StepError(
            f"the {what} cannot be written: {error.strerror or error}",
            where=str(path),
            remedy="Make the folder writable and run again: all steps are finished and kept.",
        ) from error
