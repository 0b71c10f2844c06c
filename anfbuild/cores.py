"""How many cores this process may use: the one place that decides it."""

from __future__ import annotations

import os

from anfbuild.errors import RecipeError

THREADS = "ANFBUILD_THREADS"
"""The environment's name for it. It changes how long a build takes, and nothing of what it makes."""


def available_cores() -> int:
    """The cores that the system gives, or the number in $ANFBUILD_THREADS. Raises RecipeError: that is no number."""
    return told_cores() or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


def told_cores() -> int | None:
    """The number in $ANFBUILD_THREADS, or None where there is none. Raises RecipeError: that is no number."""
    text = os.environ.get(THREADS, "")
    if not text:
        return None
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 10_000:
        raise RecipeError(
            f"${THREADS} is {text!r}, not a number of cores",
            where="environment",
            remedy=f"Set {THREADS}=1 or more, or unset it.",
        )
    return int(text)
