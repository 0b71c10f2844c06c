"""dataset: samples to calibrate on and, apart from them, samples to evaluate on."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from anfbuild.engine.step import Job, at, step


@dataclasses.dataclass(frozen=True)
class Dataset:
    """What the samples are and how many."""

    kind: str = at("dataset.kind")
    path: Path | None = at("dataset.path", content=True)
    seed: int = at("dataset.seed")
    samples: int = at("dataset.samples")
    size: int = at("dataset.size")
    license: str | None = at("dataset.license")
    evaluation_samples: int = at("evaluation.samples")


@step(needs=("assets",), config=Dataset)
def dataset(job: Job[Dataset]) -> None:
    """Make the samples for calibration and for evaluation."""
    from anfbuild import datasets

    config = job.config
    for split, samples in (("calibration", config.samples), ("evaluation", config.evaluation_samples)):
        datasets.write(
            config.kind,
            folder=job.output / split,
            split=split,
            samples=samples,
            seed=config.seed,
            size=config.size,
            license=config.license,
            path=config.path,
            assets=job.inputs["assets"],
        )
