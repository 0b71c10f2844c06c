"""dataset: samples to calibrate on and, apart from them, samples to evaluate on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Dataset:
    """What the samples are, how many, and the task that must understand their ground truth."""

    kind: str = at("dataset.kind", plugin=plugins.DATASETS)
    path: Path | None = at("dataset.path", content=True)
    seed: int = at("dataset.seed")
    samples: int = at("dataset.samples")
    size: int = at("dataset.size")
    license: str | None = at("dataset.license")
    evaluation_samples: int = at("evaluation.samples")
    task: str = at("task.kind", plugin=plugins.TASKS)


@step(needs=("assets",), config=Dataset)
def dataset(job: Job[Dataset]) -> None:
    """Make the samples for calibration and for evaluation."""
    from anfbuild import tasks
    from anfbuild.datasets import write

    config = job.config
    task = tasks.get(config.task, {})
    truths = {}
    for split, samples in (("calibration", config.samples), ("evaluation", config.evaluation_samples)):
        truths = write(
            config.kind,
            folder=job.output / split,
            split=split,
            samples=samples,
            seed=config.seed,
            size=config.size,
            path=config.path,
            assets=job.inputs["assets"],
        )
    for name, truth in truths.items():  # of the evaluation, which comes last
        task.check_truth(truth, name)
    (job.output / "truth").mkdir()
    write_json(job.output / "truth" / "truth.json", truths)
    write_json(job.output / "dataset.json", {"kind": config.kind, "license": config.license})
