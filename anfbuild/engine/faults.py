"""What a step ends with when it fails, as an error that a user can act on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from anfbuild.errors import AnfbuildError, StepError


def as_user_error(step: str, error: Exception, store: Path) -> AnfbuildError:
    """What a step, or the look for its result in the folder `store`, ended with."""
    if isinstance(error, AnfbuildError):
        return error
    if isinstance(error, OSError):
        told = _disk_error(step, error, store)
    elif isinstance(error, MemoryError):
        told = StepError(
            f"step {step!r} ran out of memory",
            remedy="Give the model a smaller input shape, or build on a machine with more memory.",
        )
    else:
        told = StepError(
            f"step {step!r} broke: {type(error).__name__}: {error}",
            remedy="This is a fault of anfbuild: run again with --debug and report what it shows.",
        )
    told.__cause__ = error
    return told


def without_workspace(error: AnfbuildError, folder: Path) -> AnfbuildError:
    """The same error with its paths as a user knows them: `fetch/model/net.onnx`, not a folder that is gone by now."""

    def shown(text: str) -> str:
        return text.replace(f"{folder / 'inputs'}{os.sep}", "").replace(f"{folder}{os.sep}", "")

    return type(error)(
        shown(error.what),
        where=None if error.where is None else shown(error.where),
        choices=map(shown, error.choices),
        remedy=None if error.remedy is None else shown(error.remedy),
    )


def _disk_error(step: str, error: OSError, store: Path) -> StepError:
    return StepError(
        f"step {step!r} could not use the disk: {error.strerror or error}",
        where=str(error.filename or store),  # a full disk names no file
        remedy=disk_remedy(error),
    )


def disk_remedy(error: OSError) -> str:
    """What to do where the store's disk took nothing, or gave nothing."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Make room and run the command again; finished steps are kept."
    return "Check the rights there, or set ANFBUILD_CACHE to a folder that this user can read and write."
