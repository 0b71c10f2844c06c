"""outline: a model that is to be costed, trained or not, becomes one clean float ONNX model."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from anfbuild.engine.step import Job, at, step


@dataclasses.dataclass(frozen=True)
class Outline:
    """The model file, and the shapes that are fixed."""

    model: Path = at("model.path", content=True)
    shapes: dict[str, list[int]] = at("model.inputs.*.shape")


@step(config=Outline)
def outline(job: Job[Outline]) -> None:
    """Clean the model; weights that lie outside of it are made up."""
    from anfbuild.graph import clean_in_place, save
    from anfbuild.graph.model import parse
    from anfbuild.graph.untrained import fill_weights
    from anfbuild.sources.readers import find_format, read

    path = job.config.model
    model = parse(path) if find_format(path) == "onnx" else read(path)
    fill_weights(model)
    clean_in_place(model, job.config.shapes, None)
    save(model, job.output / "model.onnx")
