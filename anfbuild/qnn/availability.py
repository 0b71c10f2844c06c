"""Whether this host has the HTP compiler, found without importing it."""

from __future__ import annotations

import importlib.util
import platform

from anfbuild.compat.compiler import DISTRIBUTION, no_wheel


def unavailable() -> str | None:
    """Why this host can neither compile for the HTP nor emulate it, or None where it can."""
    if importlib.util.find_spec("onnxruntime_qnn") is not None:
        return None
    return no_wheel() or f"{DISTRIBUTION} is not installed"


def compiler() -> dict[str, str | None]:
    """What of this host decides what its steps make, as a recipe's `host` names it.

    `no_compiler`: why there is none, or None. `runs_on`: where a context binary runs, `emulator` or, on the machines
    that may have the NPU itself, their kind.
    """
    machine = platform.machine()
    return {"no_compiler": unavailable(), "runs_on": machine if machine in ("aarch64", "ARM64") else "emulator"}
