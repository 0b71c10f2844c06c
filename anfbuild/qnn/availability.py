"""Whether this host has the HTP compiler at all, found without importing it."""

from __future__ import annotations

import importlib.util
import platform
import sys

# The wheels on PyPI: onnxruntime-qnn 2.7.
_PLATFORMS = {("linux", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64"), ("win32", "ARM64")}


def unavailable() -> str | None:
    """Why this host can neither compile for the HTP nor emulate it, or None where it can."""
    if importlib.util.find_spec("onnxruntime_qnn") is not None:
        return None
    host = (sys.platform, platform.machine())
    if host in _PLATFORMS:
        return "onnxruntime-qnn is not installed"
    return f"onnxruntime-qnn has no wheel for {host[0]} on {host[1]}"
