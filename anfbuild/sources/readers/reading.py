"""From a model of any format to an ONNX model: the table of readers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import onnx

from anfbuild.sources.readers.formats import find_format


@dataclasses.dataclass(frozen=True)
class Example:
    """What an input is like, for formats that do not say it themselves: `dtype` is numpy's name."""

    shape: tuple[int, ...]
    dtype: str


def read(path: Path, inputs: Mapping[str, Example] | None = None, module: str | None = None) -> onnx.ModelProto:
    """The model at `path`, whatever its format, as ONNX, accepted by onnx.checker.

    `inputs`, by their names, is what a TorchScript archive and an installed module are traced with; others do not look
    at it. `module` is the name of the installed model that the file at `path` notes: who asks says it, so that no file
    chooses which code runs. PyTorch and TensorFlow run in a worker process. Raises StepError naming the file for a
    format that is not known, and for what its reader refuses.
    """
    found = "module" if module is not None else find_format(path)
    if found == "tflite":
        from anfbuild.sources.readers.tflite import read_tflite

        return read_tflite(path)
    if found == "onnx":
        from anfbuild.sources.readers.onnx import read_onnx

        return read_onnx(path)
    from anfbuild.sources.readers.outside import convert

    request: dict[str, object] = {}
    if module is not None:
        request["name"] = module
    if found in ("module", "torchscript"):
        request["inputs"] = {name: [list(one.shape), one.dtype] for name, one in (inputs or {}).items()}
    return convert(path, found, request)
