"""report: everything that is known of the build, as results.json and as one page."""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, read_rows, size_and_digest


@dataclasses.dataclass(frozen=True)
class Report:
    """What was asked for, and the gates."""

    name: str = at("name")
    soc: str = at("target.soc")
    chip: str = at("target.name")
    soc_model: int = at("target.soc_model")
    arch: str = at("target.arch")
    vtcm_mb: int = at("target.vtcm_mb")
    backend: str = at("backend.kind")
    mode: str = at("performance.mode")
    scheme: str = at("quantization.scheme")
    estimator: str = at("calibration.estimator")
    dataset: str = at("dataset.kind")
    versions: list[dict[str, Any]] = at("host.versions")
    gates: dict[str, dict[str, float | None]] = at("gates.*")


@step(
    needs=("calibrate", "prepare", "emulate", "evaluate", "simulate", "place", "package"),
    config=Report,
)
def report(job: Job[Report]) -> None:
    """Write results.json and report.html."""
    from anfbuild import package as archive
    from anfbuild.report.html import html
    from anfbuild.report.results import results

    config = job.config
    part = {name: read_json(job.inputs[name] / f"{name}.json") for name in _PARTS}
    prepared = part["prepare"]
    document = results(
        recipe=config.name,
        target={
            "soc": config.soc,
            "name": config.chip,
            "soc_model": config.soc_model,
            "arch": config.arch,
            "vtcm_mb": config.vtcm_mb,
        },
        backend=config.backend,
        performance_mode=config.mode,
        quantization=config.scheme,
        placement=part["place"],
        traffic=_traffic(prepared),
        agreement=part["emulate"]["agreement"] if prepared["available"] else part["emulate"],
        accuracy=part["evaluate"],
        traffic_model=part["simulate"]["traffic_model"],
        latency_ms=part["simulate"]["latency_ms"],
        memory_mb=part["simulate"]["memory_mb"],
        package=size_and_digest(job.inputs["package"] / "package.anf"),
        calibration={
            "samples": part["calibrate"]["samples"],
            "estimator": config.estimator,
            "dataset": config.dataset,
            "synthetic": config.dataset.startswith("synthetic"),
        },
        versions=config.versions,
        gates=config.gates,
        reasons=_reasons(part),
    )
    (job.output / "results.json").write_bytes(archive.canonical(document))
    rows = read_rows(job.inputs["place"] / "placement.csv")
    page = html(document, placement=rows, notes=part["simulate"]["notes"])
    (job.output / "report.html").write_text(page, encoding="utf-8")


def _reasons(part: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Why single figures are missing, by their JSON pointer."""
    reasons = dict(part["simulate"]["reasons"])
    reasons |= {f"/accuracy/{figure}": why for figure, why in part["evaluate"]["reasons"].items()}
    if not part["emulate"]["available"]:
        reasons["/accuracy/emulated"] = part["emulate"]["reason"]
    reasons |= {f"/placement{pointer}": why for pointer, why in part["place"].get("reasons", {}).items()}
    return reasons


def _traffic(prepared: dict[str, Any]) -> dict[str, Any]:
    """The compiler's DRAM traffic, or why there is none."""
    if not prepared["available"]:
        return prepared
    traffic: dict[str, Any] = prepared["traffic_mb"] or {"reason": prepared["traffic_reason"]}
    return traffic


_PARTS = ("calibrate", "prepare", "emulate", "evaluate", "simulate", "place")
