"""package: everything that a device needs, in one archive."""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json


@dataclasses.dataclass(frozen=True)
class Package:
    """What the manifest says beside the contents."""

    name: str = at("name")
    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: dict[str, Any] = at("task.*")
    backend: str = at("backend.kind")
    soc: str = at("target.soc")
    soc_model: int = at("target.soc_model")
    arch: str = at("target.arch")
    vtcm_mb: int = at("target.vtcm_mb")
    scheme: str = at("quantization.scheme")


@step(needs=("fetch", "convert", "quantize", "plan", "prepare", "emulate"), config=Package)
def package(job: Job[Package]) -> None:
    """Pack context binaries, the portable QDQ model, encodings and the manifest."""
    from anfbuild import package as archive
