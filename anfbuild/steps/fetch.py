"""fetch: the source model, pinned by its SHA-256."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Fetch:
    """Where the model comes from. What is said of it, as its licence, is no reason to fetch it again."""

    kind: str = at("source.kind")
    path: Path | None = at("source.path", content=True)
    distribution: str | None = at("source.distribution")
    file: str | None = at("source.file")
    python: str | None = at("source.python")
    platform: str | None = at("source.platform")
    sha256: str | None = at("source.sha256")


@step(config=Fetch)
def fetch(job: Job[Fetch]) -> None:
    """Fetch the source model and verify its SHA-256."""
    from anfbuild import sources

    config = job.config
    model = sources.fetch(
        config.kind,
        path=config.path,
        distribution=config.distribution,
        file=config.file,
        python=config.python,
        platform=config.platform,
        sha256=config.sha256,
        folder=job.scratch,
    )
    model.replace(job.output / "model.onnx")
    write_json(
        job.output / "source.json",
        {
            "kind": config.kind,
            "distribution": config.distribution,
            "file": config.file,
            "sha256": hashlib.sha256((job.output / "model.onnx").read_bytes()).hexdigest(),
        },
    )
