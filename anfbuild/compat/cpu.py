"""The feature class of the CPU: float results are the same bytes within one, and may differ in their last digits
between two.

onnxruntime and numpy choose their float kernels by what CPUID reports: SSE, AVX2 with FMA, AVX-512; on arm64 by half
precision and SVE. Those are the levels x86-64-v2, v3 and v4, and three steps of aarch64. VNNI and the like serve
integer kernels, whose results are exact, so that they make no class.

The facts are numpy's own, which asks CPUID (arm64: the kernel's auxiliary vector): under an emulator that is the CPU
which the program runs on, where /proc/cpuinfo shows the machine's. numpy is imported for it: whoever asks has run a
step, and that imported it anyway.
"""

from __future__ import annotations

import importlib
import platform
from collections.abc import Mapping

_CLASSES: Mapping[str, tuple[tuple[str, frozenset[str]], ...]] = {
    "x86-64": (
        ("-v4", frozenset({"AVX512F", "AVX512CD", "AVX512_SKX"})),
        ("-v3", frozenset({"AVX2", "FMA3", "F16C"})),
        ("-v2", frozenset({"SSE42", "SSSE3", "POPCNT"})),
    ),
    "aarch64": (("-sve", frozenset({"SVE"})), ("-fp16", frozenset({"ASIMDHP"}))),
}
"""Architecture -> its classes, the highest first, each with the features that it takes, as numpy calls them."""

_ARCHITECTURES = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "aarch64", "arm64": "aarch64"}


def cpu_class() -> str:
    """The class of this process's CPU: `x86-64-v3`, `aarch64-fp16`; of another architecture, its name."""
    return classify(platform.machine(), _features())


def classify(machine: str, features: Mapping[str, bool]) -> str:
    """The class of a CPU of `machine` (as `platform.machine` says) that has these `features`."""
    architecture = _ARCHITECTURES.get(machine.lower(), machine.lower())
    had = {name for name, there in features.items() if there}
    levels = (level for level, needed in _CLASSES.get(architecture, ()) if needed <= had)
    return architecture + next(levels, "")


def _features() -> Mapping[str, bool]:
    import numpy as np

    room = "_core" if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else "core"
    features: Mapping[str, bool] = importlib.import_module(f"numpy.{room}._multiarray_umath").__cpu_features__
    return features
