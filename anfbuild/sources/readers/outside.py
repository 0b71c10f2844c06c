"""Readers that take PyTorch or TensorFlow: a worker process converts, with bounds on its time and memory."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import onnx

from anfbuild import confined, graph
from anfbuild.errors import StepError

TIMEOUT_S = 3600.0
MEMORY_GB = 32.0
"""Bounds on one conversion. They keep a bad file from running for ever, and no sound one from being converted."""

MODEL = "model.onnx"
"""What the worker leaves in its folder."""


class _Maker(NamedTuple):
    name: str
    packages: tuple[str, ...]
    extra: str


_TORCH = _Maker("PyTorch", ("torch", "onnxscript"), "torch")
_TENSORFLOW = _Maker("TensorFlow", ("tensorflow", "tf2onnx"), "tensorflow")
_MAKERS = {
    "torch": _TORCH,
    "torchscript": _TORCH,
    "module": _TORCH,
    "saved_model": _TENSORFLOW,
    "keras": _TENSORFLOW,
}
"""Format -> what it is read with."""


def convert(path: Path, format_: str, request: Mapping[str, object]) -> onnx.ModelProto:
    """The model at `path` as ONNX. `request` is what the task `format_` of tasks.py asks for besides.

    Raises StepError naming `path`: the extra is not installed, the model is refused, or the worker exceeds its bounds.
    """
    maker = _MAKERS[format_]
    missing = [name for name in maker.packages if importlib.util.find_spec(name) is None]
    if missing:
        raise StepError(
            f"this model needs {maker.name} to be read; not installed: {', '.join(missing)}",
            where=str(path),
            remedy=f"Run `pip install 'anfbuild[{maker.extra}]'`, or export the model to ONNX where {maker.name} is, "
            "and name that file.",
        )
    with confined.private_folder("read") as folder:
        try:
            response = confined.run(
                folder,
                "anfbuild.sources.readers.tasks",
                format_,
                {**request, "path": str(path.resolve())},
                name=maker.name,
                timeout_s=TIMEOUT_S,
                memory_gb=MEMORY_GB,
            )
        except StepError as error:
            raise StepError(error.what, where=str(path), remedy=error.remedy) from error
        _refuse(response, path, folder)
        return graph.load(folder / MODEL)


def _refuse(response: Mapping[str, object], path: Path, folder: Path) -> None:
    if "error" not in response:
        return
    error = cast(dict[str, Any], response["error"])
    lines = [line.strip() for line in str(error["message"]).splitlines() if line.strip()] or [error["kind"]]
    raise StepError(
        lines[0].replace(str(path.resolve()), str(path)).replace(str(folder), "(worker)")[:1000],
        where=str(path),
        choices=error.get("choices", ()),
        remedy=error.get("remedy") or "Save the model again by the version that is here, or export it to ONNX.",
    )
