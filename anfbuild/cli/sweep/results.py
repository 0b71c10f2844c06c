"""What a sweep came to: the records of its jobs side by side, as a table, as results.json and as results.csv."""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from anfbuild.atomic import replacing
from anfbuild.cli.seam import INTERRUPTED, describe
from anfbuild.cli.sweep import pareto
from anfbuild.cli.sweep.state import write
from anfbuild.errors import AnfbuildError

HEADINGS = ("job", "overrides", "exit", "accuracy", "latency ms", "package MB", "key", "Pareto")
_NONE = "–"
_NO_FIGURES = ("overrides", "results", "error", "planned", "steps", "failed", "contract", "pareto")
"""What of a job's record is no cell of results.csv as it is."""


@dataclasses.dataclass(frozen=True)
class Sweep:
    """What a sweep left in its folder: a record for each job that ended, in their order."""

    folder: Path
    jobs: list[dict[str, Any]]
    interrupted: bool = False
    error: AnfbuildError | None = None
    """Why the launcher gave up, if it did."""

    @property
    def exit_code(self) -> int:
        """130 if interrupted, else the highest of the jobs' and of the launcher's error."""
        if self.interrupted:
            return 130
        codes = [int(job["exit_code"]) for job in self.jobs]
        return max([*codes, *([self.error.exit_code] if self.error else [])])

    def table(self) -> list[tuple[str, ...]]:
        """Rows of HEADINGS."""
        return [
            (
                str(job["job"]),
                " ".join(job["overrides"]),
                str(job["exit_code"]),
                f"{job['metric']} {job['accuracy_quantized']:.4g}" if job["accuracy_quantized"] is not None else _NONE,
                f"{job['latency_ms']:.4g}" if job["latency_ms"] is not None else _NONE,
                f"{job['package_mb']:.2f}" if job["package_mb"] is not None else _NONE,
                str(job["key"] or _NONE)[:12],
                "*" if job["pareto"] else "",
            )
            for job in self.jobs
        ]

    def errors(self) -> list[str]:
        """What went wrong, each once, with the jobs that it happened to."""
        jobs: dict[str, list[str]] = {}
        for job in self.jobs:
            if job["error"] is not None:
                jobs.setdefault(str(AnfbuildError(**job["error"])), []).append(str(job["job"]))
        return [f"job {', '.join(numbers)}: {text}" for text, numbers in jobs.items()]

    def to_json(self) -> dict[str, Any]:
        """The sweep as JSON, as in its results.json."""
        error = {"what": INTERRUPTED} if self.interrupted else describe(self.error) if self.error else None
        return {"sweep": self.folder.name, "exit_code": self.exit_code, "jobs": self.jobs, "error": error}


def record(
    exit_code: int,
    *,
    key: str | None = None,
    results: dict[str, Any] | None = None,
    error: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What is kept of a job beside its number, folder and overrides; `results` is its results.json."""
    accuracy = (results or {}).get("accuracy") or {}
    latency = (results or {}).get("latency_ms") or {}
    size = ((results or {}).get("package") or {}).get("bytes")
    return {
        "exit_code": exit_code,
        "key": key,
        "metric": accuracy.get("metric"),
        "higher_is_better": accuracy.get("higher_is_better"),
        "accuracy_float": accuracy.get("float"),
        "accuracy_quantized": accuracy.get("quantized"),
        "accuracy_emulated": accuracy.get("emulated"),
        "latency_ms": latency.get("total"),
        "package_mb": None if size is None else size / 1e6,
        "error": error,
        "results": results,
        "planned": [],
        "steps": [],
        "failed": None,
        "contract": None,
    }


def collect(
    folder: Path,
    kept: Sequence[dict[str, Any]],
    *,
    interrupted: bool = False,
    error: AnfbuildError | None = None,
) -> Sweep:
    """Gather the jobs' records, `kept`, into results.json and results.csv; without a record, nothing is written."""
    found = [job | {name: value for name, value in record(1).items() if name not in job} for job in kept]
    verdicts = pareto.front([_point(job) for job in found])
    jobs = [{**job, "pareto": verdict} for job, verdict in zip(found, verdicts, strict=True)]
    result = Sweep(folder, jobs, interrupted, error)
    if jobs:
        write(folder / "results.json", result.to_json(), indent=2)
        _write_csv(folder / "results.csv", [_row(job) for job in jobs])
    return result


def _point(job: dict[str, Any]) -> pareto.Point | None:
    metric, accuracy, latency = job["metric"], job["accuracy_quantized"], job["latency_ms"]
    if job["exit_code"] != 0 or None in (metric, accuracy, job["higher_is_better"], latency):
        return None
    return pareto.Point(metric, accuracy, job["higher_is_better"], latency, job["package_mb"])


def _row(job: dict[str, Any]) -> dict[str, Any]:
    varied = dict(item.lstrip("+~").partition("=")[::2] for item in job["overrides"])
    figures = {key: job[key] for key in job if key not in _NO_FIGURES}
    verdict = None if job["pareto"] is None else str(job["pareto"]).lower()
    return {"job": job["job"], **varied, **figures, "pareto": verdict, "error": (job["error"] or {}).get("what")}


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    # The name of a file that is no text, in a message, is no reason to lose the table.
    with (
        replacing(path) as partial,
        partial.open("w", encoding="utf-8", errors="backslashreplace", newline="") as stream,
    ):
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        writer.writerows(rows)
