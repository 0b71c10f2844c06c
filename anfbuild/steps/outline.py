"""outline: a model that is to be costed, trained or not, becomes one clean float ONNX model."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING

from anfbuild.engine.step import Job, at, step
from anfbuild.errors import StepError

if TYPE_CHECKING:
    import onnx

_SIZES = 16
"""Most entries of a list that may be a shape; longer ones are tables."""


@dataclasses.dataclass(frozen=True)
class Outline:
    """The model, and the shapes that are fixed; with the types of inputs, what a model that says neither is traced
    with."""

    model: Path = at("model.path", content=True)
    shapes: dict[str, list[int]] = at("model.inputs.*.shape")
    dtypes: dict[str, str] = at("model.inputs.*.dtype")


@step(config=Outline)
def outline(job: Job[Outline]) -> None:
    """Clean the model; weights that lie outside of it are made up. Raises StepError where these are sizes."""
    from anfbuild.graph import clean_in_place, save
    from anfbuild.graph.model import parse
    from anfbuild.graph.untrained import fill_weights
    from anfbuild.sources.readers import Example, find_format, read

    path, shapes = job.config.model, job.config.shapes
    if find_format(path) == "onnx":
        model = parse(path)
    else:
        model = read(path, {name: Example(tuple(shape), job.config.dtypes[name]) for name, shape in shapes.items()})
    _refuse_missing_sizes(model, path)
    fill_weights(model)
    clean_in_place(model, shapes, None)
    save(model, job.output / "model.onnx")


def _refuse_missing_sizes(model: onnx.ModelProto, path: Path) -> None:
    """Short lists of 64-bit integers are shapes, axes and positions: what a model costs hangs on their values."""
    from onnx import TensorProto

    for tensor in model.graph.initializer:
        outside = tensor.data_location == TensorProto.EXTERNAL and tensor.data_type == TensorProto.INT64
        if outside and len(tensor.dims) <= 1 and math.prod(tensor.dims) <= _SIZES:
            raise StepError(
                f"the values of {tensor.name!r} lie outside of the model, and they may be sizes",
                where=str(path),
                remedy="Keep small tensors inside: onnx.save(model, path, save_as_external_data=True, "
                "size_threshold=1024).",
            )
