"""Programs that `torch.export.save` wrote (.pt2), through PyTorch's own ONNX exporter. PyTorch is the extra `torch`."""

from __future__ import annotations

from pathlib import Path

import onnx

from anfbuild import graph
from anfbuild.errors import StepError
from anfbuild.graph.passes.upgrade_opset import NEWEST

_INSTALL = "Run `pip install 'anfbuild[torch]'`, or export the model to ONNX where PyTorch is, and name that file."
_AGAIN = "Save it again with torch.export.save, by the PyTorch that is here; or export it to ONNX and name that file."


def read_torch(path: Path) -> onnx.ModelProto:
    """The exported program in `path` as ONNX, its inputs and outputs under the names that PyTorch gives them.

    Raises StepError naming the file where PyTorch is not installed, cannot load the program, or knows no ONNX
    operators for what it does.
    """
    try:
        import onnxscript as _onnxscript  # noqa: F401  # the exporter needs it, and says so late
        import torch
    except ImportError as error:
        raise StepError(
            f"a program of PyTorch needs PyTorch to be read: {error}", where=str(path), remedy=_INSTALL
        ) from error
    try:
        program = torch.export.load(str(path))
    except Exception as error:  # PyTorch's errors have no common base
        raise StepError(f"PyTorch cannot load the program: {_line(error)}", where=str(path), remedy=_AGAIN) from error
    try:
        made = torch.onnx.export(program, dynamo=True, opset_version=NEWEST, verbose=False)
        model: onnx.ModelProto = made.model_proto
    except Exception as error:
        raise StepError(
            f"PyTorch cannot export the program to ONNX: {_line(error)}", where=str(path), remedy=_AGAIN
        ) from error
    graph.check(model, where=str(path))
    return model


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
