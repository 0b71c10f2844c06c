"""Where Qualcomm's compiler can be had at all."""

from __future__ import annotations

import platform
import sys

DISTRIBUTION = "onnxruntime-qnn"

_WHEELS = {("linux", "x86_64"), ("linux", "aarch64"), ("win32", "AMD64"), ("win32", "ARM64")}
"""(`sys.platform`, machine) of the wheels of onnxruntime-qnn 2.7."""


def no_wheel() -> str | None:
    """Why this host cannot have the compiler, or None where it can."""
    host = (sys.platform, platform.machine())
    return None if host in _WHEELS else f"{DISTRIBUTION} has no wheel for {host[0]} on {host[1]}"
