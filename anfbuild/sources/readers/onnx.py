"""ONNX itself: read in with its external data, checked, and otherwise left as it is."""

from __future__ import annotations

from pathlib import Path

import onnx

from anfbuild import graph


def read_onnx(path: Path) -> onnx.ModelProto:
    """The model in `path`. Raises StepError naming the file for what is no sound ONNX model."""
    return graph.load(path)
