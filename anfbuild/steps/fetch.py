"""fetch: the source model, pinned by its SHA-256, and what belongs to it."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from anfbuild import plugins
from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Fetch:
    """Where the model comes from. What is said of it, as its licence, is no reason to fetch it again."""

    kind: str = at("source.kind")
    path: Path | None = at("source.path", content=True)
    url: str | None = at("source.url")
    repo: str | None = at("source.repo")
    revision: str | None = at("source.revision")
    distribution: str | None = at("source.distribution")
    name: str | None = at("source.name", plugin=plugins.MODELS)
    file: str | None = at("source.file")
    python: str | None = at("source.python")
    platform: str | None = at("source.platform")
    sha256: str | None = at("source.sha256")
    vocabulary_kind: str | None = at("source.vocabulary.kind")
    vocabulary_path: Path | None = at("source.vocabulary.path", content=True)
    vocabulary_distribution: str | None = at("source.vocabulary.distribution")
    vocabulary_file: str | None = at("source.vocabulary.file")
    vocabulary_sha256: str | None = at("source.vocabulary.sha256")


@step(config=Fetch)
def fetch(job: Job[Fetch]) -> None:
    """Fetch the source model and verify its SHA-256."""
    from anfbuild import sources

    config = job.config
    folder = job.output / "model"
    model = sources.fetch(
        config.kind,
        path=config.path,
        url=config.url,
        repo=config.repo,
        revision=config.revision,
        distribution=config.distribution,
        name=config.name,
        file=config.file,
        python=config.python,
        platform=config.platform,
        sha256=config.sha256,
        folder=folder,
        downloads=sources.Downloads(keep=job.downloads, tell=job.progress),
    )
    if config.path is not None and config.file is None:
        # The name of a file on this machine is not in the key, so it cannot be in the result.
        model = model.replace(folder / f"model{model.suffix}")
    if config.vocabulary_kind is not None:
        folder_of_texts = job.output / "vocabulary"
        found = sources.fetch(
            config.vocabulary_kind,
            path=config.vocabulary_path,
            distribution=config.vocabulary_distribution,
            file=config.vocabulary_file,
            sha256=config.vocabulary_sha256,
            where="source.vocabulary",
            folder=folder_of_texts,
        )
        found.replace(folder_of_texts / "vocabulary.txt")
    write_json(
        job.output / "source.json",
        {
            "kind": config.kind,
            "url": config.url,
            "repo": config.repo,
            "revision": config.revision,
            "distribution": config.distribution,
            "name": config.name,
            "file": config.file,
            "entry": model.relative_to(job.output).as_posix(),
            "sha256": _digest(model, folder),
        },
    )


def _digest(model: Path, folder: Path) -> str:
    """SHA-256 of the model's file where it is all there is, else of the folder."""
    from anfbuild.sources.verify import folder_digest

    if [path for path in folder.rglob("*") if path.is_file()] != [model]:
        return folder_digest(folder)
    with model.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
