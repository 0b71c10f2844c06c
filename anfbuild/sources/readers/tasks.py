"""What the readers' worker process can be asked for: each task converts a model to `model.onnx` in its folder.

A request holds `path`, that of the model, and what `outside.convert` adds: of an installed module its `name`, of what
is traced the `inputs`, {name: [shape, dtype]}.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnx

from anfbuild import graph
from anfbuild.sources.readers.outside import MODEL

Request = Mapping[str, Any]


def torch(request: Request) -> dict[str, object]:
    """A program of `torch.export.save`."""
    from anfbuild.sources.readers.torch import read_program

    return _leave(read_program(Path(request["path"])))


def torchscript(request: Request) -> dict[str, object]:
    """A TorchScript archive."""
    from anfbuild.sources.readers.torch import read_script

    return _leave(read_script(Path(request["path"]), request["inputs"]))


def module(request: Request) -> dict[str, object]:
    """The module that an installed distribution offers."""
    from anfbuild.sources.readers.torch import read_module

    return _leave(read_module(request["name"], request["inputs"]))


def saved_model(request: Request) -> dict[str, object]:
    """A SavedModel's folder, or an archive with it."""
    from anfbuild.sources.readers.tensorflow import read_saved_model

    return _leave(read_saved_model(Path(request["path"])))


def keras(request: Request) -> dict[str, object]:
    """A Keras model."""
    from anfbuild.sources.readers.tensorflow import read_keras

    return _leave(read_keras(Path(request["path"])))


def _leave(model: onnx.ModelProto) -> dict[str, object]:
    graph.save(model, Path(MODEL))
    return {}


TASKS: dict[str, Callable[[Request], dict[str, object]]] = {
    task.__name__: task for task in (torch, torchscript, module, saved_model, keras)
}
