"""From a model of any format to an ONNX model: the table of readers."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import onnx

from anfbuild.sources.readers.formats import find_format


@dataclasses.dataclass(frozen=True)
class Example:
    """What an input is like, for formats that do not say it themselves: `dtype` is numpy's name."""

    shape: tuple[int, ...]
    dtype: str


def read(path: Path, inputs: Mapping[str, Example] | None = None) -> onnx.ModelProto:
    """The model at `path`, whatever its format, as ONNX, accepted by onnx.checker.

    `inputs`, by their names, is what a TorchScript archive and an installed module are traced with; others do not look
    at it. PyTorch and TensorFlow run in a worker process. Raises StepError naming the file for a format that is not
    known, and for what its reader refuses.
    """
    found = find_format(path)
    if found == "tflite":
        from anfbuild.sources.readers.tflite import read_tflite

        return read_tflite(path)
    if found == "onnx":
        from anfbuild.sources.readers.onnx import read_onnx

        return read_onnx(path)
    from anfbuild.sources.readers.outside import convert

    request: dict[str, object] = {}
    if found == "module":
        request["name"] = json.loads(path.read_text(encoding="utf-8"))["name"]
    if found in ("module", "torchscript"):
        request["inputs"] = {name: [list(one.shape), one.dtype] for name, one in (inputs or {}).items()}
    return convert(path, found, request)
