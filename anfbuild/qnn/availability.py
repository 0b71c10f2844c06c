"""Whether this host has the HTP compiler, found without importing it."""

from __future__ import annotations

import importlib.util

from anfbuild.compat.compiler import DISTRIBUTION, no_wheel


def unavailable() -> str | None:
    """Why this host can neither compile for the HTP nor emulate it, or None where it can."""
    if importlib.util.find_spec("onnxruntime_qnn") is not None:
        return None
    return no_wheel() or f"{DISTRIBUTION} is not installed"
