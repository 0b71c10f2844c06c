"""The machine that a build runs on: told of what is made, never part of a key."""

from __future__ import annotations

import platform


def host() -> dict[str, str]:
    """This machine, as far as it may matter to what is made on it. Imports numpy: for builds that ran a step."""
    from anfbuild.compat.cpu import cpu_class

    return {**system(), "cpu_class": cpu_class()}


def system() -> dict[str, str]:
    """What a build notes of the machine without a look at its CPU."""
    return {"system": platform.system(), "machine": platform.machine(), "python": platform.python_version()}
