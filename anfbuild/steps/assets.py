"""assets: the files that a data set is made from, such as photos and fonts, pinned by their SHA-256."""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import write_json


@dataclasses.dataclass(frozen=True)
class Assets:
    """Group -> {distribution, python, platform, license, files {member: sha256}}."""

    groups: dict[str, dict[str, Any]] = at("dataset.assets")


@step(config=Assets)
def assets(job: Job[Assets]) -> None:
    """Fetch the files that the data set is made from."""
    from anfbuild import sources

    for name, group in sorted(job.config.groups.items()):
        folder = job.output / name
        folder.mkdir()
        sources.fetch_members(
            group["distribution"],
            python=group["python"],
            platform=group["platform"],
            files=group["files"],
            folder=folder,
            downloads=sources.Downloads(tell=job.progress),
        )
    write_json(
        job.output / "assets.json",
        {
            name: {"distribution": group["distribution"], "license": group["license"]}
            for name, group in job.config.groups.items()
        },
    )
