"""package, of several components: one archive with the files of each below a folder of its name."""

from __future__ import annotations

import dataclasses

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.parts import folders


@dataclasses.dataclass(frozen=True)
class Package:
    """What the manifest says beside the contents."""

    name: str = at("name")


@step(needs=("package[*]",), config=Package)
def package(job: Job[Package]) -> None:
    """Pack the packages of all components into one."""
    from anfbuild import package as archive

    packed = {name: archive.read(folder / "package.anf") for name, folder in folders(job.inputs, "package").items()}
    for name, one in packed.items():
        one.extract(job.scratch / name)
    files, manifest = archive.join(packed, job.scratch)
    archive.write(job.output / "package.anf", files=files, manifest={**manifest, "name": job.config.name})
