"""Named tensors in one .npz. ONNX names may be anything, also what a ZIP member or a keyword may not be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes the arrays under numbers, with their names in a JSON text of its own."""
    names = np.array(json.dumps(list(arrays)))
    np.savez(path, allow_pickle=False, names=names, **{f"a{i}": array for i, array in enumerate(arrays.values())})


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays that `write_arrays` wrote, in their order."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[f"a{i}"] for i, name in enumerate(json.loads(str(file["names"])))}
