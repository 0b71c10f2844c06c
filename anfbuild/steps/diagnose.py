"""diagnose: each stage of the build compared with the one before, and the first node of each that departs.

Nothing needs it: it is planned where it is asked for, and by a build whose emulator and CPU do not agree.
"""

from __future__ import annotations

import dataclasses
from itertools import islice
from typing import TYPE_CHECKING, Any

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json
from anfbuild.steps.outputs import read_outputs
from anfbuild.steps.samples import read_feeds, read_task

if TYPE_CHECKING:
    import onnx

    from anfbuild.diagnosis.diagnose import Emulation, Models
    from anfbuild.quantization.encodings import Encodings


@dataclasses.dataclass(frozen=True)
class Diagnose:
    """How many samples are compared, what the models are fed with, the chip, and how far it may be off."""

    samples: int = at("emulate.samples")
    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: str = at("task.kind", plugin=plugins.TASKS)
    module: str | None = at("source.name", plugin=plugins.MODELS)
    scheme: str = at("quantization.scheme")
    soc_model: int = at("target.soc_model")
    arch: str = at("target.arch")
    vtcm_mb: int = at("target.vtcm_mb")
    runs_on: str = at("host.runs_on")
    agreement_lsb: float = at("diagnosis.agreement_lsb")


@step(
    needs=("fetch", "convert", "condition", "quantize", "emulate", "dataset/evaluation"),
    config=Diagnose,
)
def diagnose(job: Job[Diagnose]) -> None:
    """Compare each stage of the build with the one before, and find where it departs."""
    from anfbuild.diagnosis.diagnose import Target
    from anfbuild.diagnosis.diagnose import diagnose as run
    from anfbuild.qnn.options import Options
    from anfbuild.steps.aim import aim_for

    config = job.config
    models = _models(job)
    task = read_task(config.task, job.inputs["convert"] / "vocabulary")
    feeds = read_feeds(job.inputs["dataset/evaluation"], task, config.inputs)
    found = run(
        models,
        [arrays for _, arrays in islice(feeds, config.samples)],
        list(islice(read_outputs(job.inputs["emulate"] / "cpu", models.encodings), config.samples)),
        _emulation(job, models.encodings),
        Target(
            Options(soc_model=config.soc_model, arch=config.arch, vtcm_mb=config.vtcm_mb),
            aim_for(config.soc_model, config.scheme, models.qdq, vtcm_mb=config.vtcm_mb),
            {name: entry["shape"] for name, entry in config.inputs.items()},
            config.agreement_lsb,
        ),
    )
    write_json(job.output / "diagnosis.json", found.to_json())


def _models(job: Job[Diagnose]) -> Models:
    from anfbuild.diagnosis.diagnose import Models
    from anfbuild.graph import load
    from anfbuild.quantization.encodings import Encodings

    return Models(
        source=_source(job),
        converted=load(job.inputs["convert"] / "model.onnx"),
        conditioned=load(job.inputs["condition"] / "model.onnx"),
        qdq=load(job.inputs["quantize"] / "model.onnx"),
        encodings=Encodings.from_json(read_json(job.inputs["quantize"] / "encodings.json")),
        provenance=read_json(job.inputs["convert"] / "convert.json")["provenance"],
        rewritten=[entry["node"] for entry in read_json(job.inputs["condition"] / "condition.json")["rewrites"]],
    )


def _source(job: Job[Diagnose]) -> onnx.ModelProto:
    """The source model as `convert` reads it, before its passes."""
    from anfbuild.sources.readers import Example, read

    fetched = job.inputs["fetch"]
    inputs = {name: Example(tuple(entry["shape"]), entry["dtype"]) for name, entry in job.config.inputs.items()}
    return read(fetched / read_json(fetched / "source.json")["entry"], inputs, job.config.module)


def _emulation(job: Job[Diagnose], encodings: Encodings) -> Emulation:
    from anfbuild.diagnosis.diagnose import Emulation

    emulated = read_json(job.inputs["emulate"] / "emulate.json")
    if not emulated["available"]:
        return Emulation((), emulated["reason"])
    outputs = list(islice(read_outputs(job.inputs["emulate"] / "htp", encodings), job.config.samples))
    return Emulation(outputs, source=emulated["agreement"]["source"])
