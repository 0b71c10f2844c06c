"""report, of several components: what is known of the whole and of each, as results.json and as one page."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json
from anfbuild.steps.parts import folders


@dataclasses.dataclass(frozen=True)
class Report:
    """The name, and the gates that judge the whole; all else the components' reports say."""

    name: str = at("name")
    gates: dict[str, dict[str, float | None]] = at("gates.*")


@step(needs=("package", "report[*]", "prepare[*]", "simulate[*]"), config=Report)
def report(job: Job[Report]) -> None:
    """Write results.json and report.html of all components."""
    from anfbuild import package as archive
    from anfbuild.report.components import Component, join
    from anfbuild.report.html import html

    prepared, simulated = (folders(job.inputs, step) for step in ("prepare", "simulate"))
    components = {
        name: Component(
            results=read_json(folder / "results.json"),
            placement=_rows(prepared[name] / "placement.csv"),
            notes=read_json(simulated[name] / "simulate.json")["notes"],
        )
        for name, folder in folders(job.inputs, "report").items()
    }
    packed = (job.inputs["package"] / "package.anf").read_bytes()
    document = join(
        job.config.name,
        components,
        package={"bytes": len(packed), "sha256": hashlib.sha256(packed).hexdigest()},
        gates=job.config.gates,
    )
    (job.output / "results.json").write_bytes(archive.canonical(document))
    (job.output / "report.html").write_text(html(document, components=components), encoding="utf-8")


def _rows(path: Path) -> list[dict[str, Any]]:
    return list(csv.DictReader(path.open(encoding="utf-8", newline=""))) if path.exists() else []
