"""How a step over all components finds what each of them left."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def folders(inputs: Mapping[str, Path], step: str) -> dict[str, Path]:
    """Component -> what `step` of it left, by name: the order that a recipe has them in decides nothing."""
    named = {need.partition("[")[2].removesuffix("]"): need for need in inputs if need.startswith(f"{step}[")}
    return {component: inputs[named[component]] for component in sorted(named)}
