"""emulate: the quantized model on the evaluation samples, all on the CPU and the first of them on the HTP emulator.

The emulator takes one core and seconds a sample, so the CPU's passes run beside it.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json
from anfbuild.steps.outputs import write_outputs
from anfbuild.steps.samples import read_feeds, read_task

if TYPE_CHECKING:
    import numpy as np

    from anfbuild.qnn.emulate import Emulated


@dataclasses.dataclass(frozen=True)
class Emulate:
    """How many samples are emulated, on which chip; on a machine that may have it, they run on the chip itself."""

    samples: int = at("emulate.samples")
    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: str = at("task.kind", plugin=plugins.TASKS)
    soc_model: int = at("target.soc_model")
    arch: str = at("target.arch")
    vtcm_mb: int = at("target.vtcm_mb")
    runs_on: str = at("host.runs_on")


@step(needs=("prepare", "quantize", "convert/vocabulary", "dataset/evaluation"), config=Emulate)
def emulate(job: Job[Emulate]) -> None:
    """Run the QDQ model on the CPU and the context binary on the HTP emulator, and compare them."""
    from anfbuild.graph import run_each
    from anfbuild.quantization.agreement import agreement
    from anfbuild.quantization.encodings import Encodings

    prepared = read_json(job.inputs["prepare"] / "prepare.json")
    encodings = Encodings.from_json(read_json(job.inputs["quantize"] / "encodings.json"))
    samples = job.config.samples
    stopped = threading.Event()
    references: list[dict[str, np.ndarray]] = []

    def run_on_cpu() -> None:
        feeds = takewhile(lambda _: not stopped.is_set(), _feeds(job))
        for index, outputs in enumerate(run_each(job.inputs["quantize"] / "model.onnx", feeds)):
            write_outputs(job.output / "cpu", index, outputs, encodings)
            references.extend([outputs] if index < samples else [])

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run_on_cpu)
        try:
            emulated = _run_emulator(job, prepared["partitions"]) if prepared["available"] else None
        except BaseException:
            stopped.set()
            raise
        running.result()
    if emulated is None:
        write_json(job.output / "emulate.json", {"available": False, "reason": prepared["reason"]})
        return
    job.observe("load_ms", emulated.load_ms)
    for index, outputs in enumerate(emulated.outputs):
        write_outputs(job.output / "htp", index, outputs, encodings)
    found = agreement(references, emulated.outputs, encodings)
    write_json(
        job.output / "emulate.json",
        {
            "available": True,
            "agreement": {
                "between": "HTP emulator and CPU, QDQ model",
                **dataclasses.asdict(found),
                "source": emulated.source,
                **({"reason": "the outputs are equal"} if found.sqnr_db is None else {}),
            },
        },
    )


def _feeds(job: Job[Emulate]) -> Iterator[dict[str, np.ndarray]]:
    task = read_task(job.config.task, job.inputs["convert/vocabulary"])
    return (arrays for _, arrays in read_feeds(job.inputs["dataset/evaluation"], task, job.config.inputs))


def _run_emulator(job: Job[Emulate], partitions: int) -> Emulated:
    from anfbuild import qnn
    from anfbuild.qnn.emulate import emulate as run

    config = job.config
    options = qnn.Options(soc_model=config.soc_model, arch=config.arch, vtcm_mb=config.vtcm_mb)
    feeds = list(islice(_feeds(job), config.samples))
    return run(job.inputs["prepare"] / "context", feeds, options, partitions=partitions)
