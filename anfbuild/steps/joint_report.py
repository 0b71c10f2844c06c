"""report, of several components: what is known of the whole and of each, as results.json and as one page."""

from __future__ import annotations

import dataclasses

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, read_rows, size_and_digest
from anfbuild.steps.parts import folders


@dataclasses.dataclass(frozen=True)
class Report:
    """The name, and the gates that judge the whole; all else the components' reports say."""

    name: str = at("name")
    gates: dict[str, dict[str, float | None]] = at("gates.*")


@step(needs=("package", "report[*]", "place[*]", "simulate[*]"), config=Report)
def report(job: Job[Report]) -> None:
    """Write results.json and report.html of all components."""
    from anfbuild import package as archive
    from anfbuild.report.components import Component, join
    from anfbuild.report.html import html

    placed, simulated = (folders(job.inputs, step) for step in ("place", "simulate"))
    components = {
        name: Component(
            results=read_json(folder / "results.json"),
            placement=read_rows(placed[name] / "placement.csv"),
            macs=read_json(placed[name] / "place.json").get("macs"),
            notes=read_json(simulated[name] / "simulate.json")["notes"],
        )
        for name, folder in folders(job.inputs, "report").items()
    }
    document = join(
        job.config.name,
        components,
        package=size_and_digest(job.inputs["package"] / "package.anf"),
        gates=job.config.gates,
    )
    (job.output / "results.json").write_bytes(archive.canonical(document))
    (job.output / "report.html").write_text(html(document, components=components), encoding="utf-8")
