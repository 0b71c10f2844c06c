"""convert: any source model becomes one clean float ONNX model with static shapes."""

from __future__ import annotations

import dataclasses

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json


@dataclasses.dataclass(frozen=True)
class Convert:
    """The shapes that are fixed, the outputs that are kept, and whether every BatchNormalization must fold; what a
    model that says none of it is traced with, and the installed module that one may be."""

    shapes: dict[str, list[int]] = at("model.inputs.*.shape")
    dtypes: dict[str, str] = at("model.inputs.*.dtype")
    module: str | None = at("source.name", plugin=plugins.MODELS)
    outputs: list[str] | None = at("model.outputs")
    strict: bool = at("model.strict")


@step(needs=("fetch",), config=Convert)
def convert(job: Job[Convert]) -> None:
    """Convert the source model to a clean float ONNX model."""
    from anfbuild.graph import clean_in_place, interface, node_macs, save
    from anfbuild.graph.large import structure
    from anfbuild.graph.passes import drop_remarks
    from anfbuild.sources.readers import Example, read
    from anfbuild.sources.vocabulary import vocabulary

    fetched = job.inputs["fetch"]
    inputs = {name: Example(tuple(shape), job.config.dtypes[name]) for name, shape in job.config.shapes.items()}
    model = read(fetched / read_json(fetched / "source.json")["entry"], inputs, job.config.module)
    (job.output / "vocabulary").mkdir()
    write_json(
        job.output / "vocabulary" / "vocabulary.json", vocabulary(fetched / "vocabulary" / "vocabulary.txt", model)
    )
    # For whoever says of the source's own nodes where they run: what says it may change without a conversion.
    (job.output / "source").mkdir()
    source = structure(model)
    drop_remarks.run(source)
    save(source, job.output / "source" / "model.onnx")
    nodes = len(model.graph.node)
    _, passes, provenance = clean_in_place(model, job.config.shapes, job.config.outputs, strict=job.config.strict)
    save(model, job.output / "model.onnx")
    macs = node_macs(model)
    write_json(
        job.output / "convert.json",
        {
            "nodes": {"source": nodes, "converted": len(model.graph.node)},
            "macs": sum(macs.values()),
            "interface": interface(model),
            "passes": [dataclasses.asdict(result) for result in passes],
            # Only what says something: most nodes are the source node of the same name.
            "provenance": {name: sources for name, sources in provenance.items() if sources != [name]},
        },
    )
