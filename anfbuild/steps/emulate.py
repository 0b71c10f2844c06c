"""emulate: the context binary runs on the HTP emulator, and its outputs are held against the CPU's."""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json
from anfbuild.steps.samples import read_feeds


@dataclasses.dataclass(frozen=True)
class Emulate:
    """How many samples, on which chip."""

    samples: int = at("emulate.samples")
    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: str = at("task.kind")
    soc_model: int = at("target.soc_model")
    arch: str = at("target.arch")
    vtcm_mb: int = at("target.vtcm_mb")


@step(needs=("prepare", "quantize", "dataset/evaluation"), config=Emulate)
def emulate(job: Job[Emulate]) -> None:
    """Run the context binary on the HTP emulator and compare it with the QDQ model on the CPU."""
    from concurrent.futures import ThreadPoolExecutor

    from anfbuild import graph, qnn, tasks
    from anfbuild.qnn.arrays import write_arrays
    from anfbuild.qnn.emulate import emulate as run_emulator
    from anfbuild.quantization.agreement import agreement
    from anfbuild.quantization.encodings import Encodings

    prepared = read_json(job.inputs["prepare"] / "prepare.json")
    if not prepared["available"]:
        write_json(job.output / "emulate.json", {"available": False, "reason": prepared["reason"]})
        return
    config = job.config
    task = tasks.get(config.task, {})
    folder = job.inputs["dataset/evaluation"]
    samples, feeds = zip(*read_feeds(folder, task, config.inputs, config.samples), strict=True)
    options = qnn.Options(soc_model=config.soc_model, arch=config.arch, vtcm_mb=config.vtcm_mb)
    session = graph.Session(job.inputs["quantize"] / "model.onnx", threads=1)
    with ThreadPoolExecutor(1) as pool:  # the emulator takes one core and seconds a sample: let the CPU run beside it
        running = pool.map(session.run, feeds)
        emulated = run_emulator(job.inputs["prepare"] / "context", feeds, options)
        references = list(running)
    job.observe("load_ms", emulated.load_ms)

    found = agreement(
        references,
        emulated.outputs,
        Encodings.from_json(read_json(job.inputs["quantize"] / "encodings.json")),
    )
    (job.output / "outputs").mkdir()
    for index, outputs in enumerate(emulated.outputs):
        write_arrays(job.output / "outputs" / f"{index:04d}.npz", outputs)
    write_json(
        job.output / "emulate.json",
        {
            "available": True,
            "samples": [sample.name for sample in samples],
            "agreement": {
                "between": "HTP emulator and CPU, QDQ model",
                **dataclasses.asdict(found),
                "source": emulated.source,
                **({"reason": "the outputs are equal"} if found.sqnr_db is None else {}),
            },
        },
    )
