"""`anfbuild fit TARGET FILE`: the costs of a chip from measured latencies, written to conf/target of the project."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.atomic import replacing
from anfbuild.cli.arguments import Arguments
from anfbuild.cli.build import print_event
from anfbuild.cli.console import Console
from anfbuild.cli.costing import Costing
from anfbuild.cli.targets import Chip, chip
from anfbuild.errors import RecipeError, did_you_mean

_SCHEMES = {"w8a8": "int8_per_channel", "w8a16": "a16w8_per_channel", "float": "fp16"}
_NEEDED = ("model", "precision", "latency_ms")
_KNOWN = {
    *_NEEDED,
    *("family", "chipset", "soc_model", "htp_arch", "runtime", "mem_min_mb", "peak_mem_mb", "layers_npu"),
    *("layers_gpu", "layers_cpu", "primary_unit", "qairt", "job_id", "component", "mem_max_mb", "primary"),
}
"""Columns of a file of one's own, and those of AI Hub's measurements, which are passed over."""
_LONGEST_MS = 1e5
_LEAST_MS = 1e-3


@dataclasses.dataclass(frozen=True)
class _Row:
    line: int
    model: Path
    family: str
    precision: str
    latency_ms: float


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Fit, and write the file. Raises RecipeError for rows that are wrong, StepError for a model that is."""
    name, file = arguments.words
    if arguments.overrides:
        raise RecipeError(f"'fit' takes no {arguments.overrides[0]!r}", where="command line", remedy="Leave it out.")
    target = chip(name, project)
    rows = read_rows(project / file)
    from anfbuild.qnn import unavailable
    from anfbuild.qnn.features import Features
    from anfbuild.simulator.fit import PRIOR, Sample, cross_validate, fit

    reason = unavailable()
    if reason is not None:
        raise RecipeError(f"this host cannot compile the measured models: {reason}")
    samples = []
    for row in rows:
        scheme = _SCHEMES[row.precision]
        costing = Costing(row.model, {}, target, scheme, project, lambda event: print_event(event, console))
        try:
            features = Features.from_json(costing.compiled()["features"])
        finally:
            costing.close()
        samples.append(Sample(row.model.stem, row.family, row.precision, features, row.latency_ms))
    prior = target.values["rates"].get("compiled") or PRIOR
    costs = fit(samples, prior)
    errors = sorted(abs(ratio - 1) for ratio in cross_validate(samples, prior)) if len(samples) > 4 else []
    output = project / arguments.options.get("--output", f"conf/target/{name}.yaml")
    _write(output, target, costs, samples)
    document = {
        "target": name,
        "measurements": len(samples),
        "error": {"median": errors[len(errors) // 2], "p90": errors[int(len(errors) * 0.9)]} if errors else None,
        "costs": costs,
        "file": str(output),
    }
    if errors:
        console.print(
            f"error of models left out: median {errors[len(errors) // 2]:.0%}, p90 {errors[int(len(errors) * 0.9)]:.0%}"
        )
    console.print(f"written: {output}")
    return 0, document


def read_rows(path: Path) -> list[_Row]:
    """The measurements in a CSV file. Raises RecipeError that names the line of what is wrong."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            columns = list(reader.fieldnames or [])
            found = list(reader)
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"the measurements cannot be read: {error}", where=str(path)) from error
    _check_columns(columns, path)
    rows: list[_Row] = []
    for line, values in enumerate(found, 2):
        row = _row(values, line, path)
        if any((row.model, row.precision) == (other.model, other.precision) for other in rows):
            raise RecipeError(
                f"{row.model.name} in {row.precision} is measured twice",
                where=f"{path}:{line}",
                remedy="Keep one row of a model and precision.",
            )
        rows.append(row)
    return rows


def _check_columns(columns: Sequence[str], path: Path) -> None:
    for column in columns:
        if column not in _KNOWN:
            unit = " Latencies are in ms: give latency_ms." if column.startswith("latency") else ""
            raise RecipeError(
                f"unknown column {column!r}",
                where=f"{path}:1",
                choices=sorted(_KNOWN),
                remedy=f"{did_you_mean(column, _KNOWN)}Rename or remove it.{unit}",
            )
    missing = next((column for column in _NEEDED if column not in columns), None)
    if missing is not None:
        raise RecipeError(f"there is no column {missing!r}", where=f"{path}:1", choices=_NEEDED)


def _row(values: Mapping[str, str], line: int, path: Path) -> _Row:
    where = f"{path}:{line}"
    if values["precision"] not in _SCHEMES:
        raise RecipeError(f"unknown precision {values['precision']!r}", where=where, choices=_SCHEMES)
    try:
        latency = float(values["latency_ms"] or "")
    except ValueError:
        latency = math.nan
    if not _LEAST_MS <= latency <= _LONGEST_MS:
        raise RecipeError(
            f"latency_ms is {values['latency_ms']!r}: not a time between {_LEAST_MS:g} and {_LONGEST_MS:g} ms",
            where=where,
            remedy="Give milliseconds.",
        )
    model = path.parent / values["model"]
    if not model.is_file():
        raise RecipeError(f"there is no model file {values['model']!r}", where=where, remedy="Paths start at the CSV.")
    return _Row(line, model, values.get("family") or model.stem, values["precision"], latency)


def _write(path: Path, target: Chip, costs: Mapping[str, float], samples: Sequence[Any]) -> None:
    rates = target.values["rates"]
    fitted = sorted({sample.precision for sample in samples})
    lines = [f"# Written by anfbuild fit {target.name} from {len(samples)} measurements."]
    lines += [f"{key}: {target.values[key]}" for key in ("soc", "name", "soc_model", "arch", "vtcm_mb")]
    lines += ["rates:", *(f"  {key}: {rates[key]}" for key in ("conv_tmac_s", "weight_gb_s", "fixed_ms"))]
    lines += [f"  fitted: [{', '.join(fitted)}]", "  compiled:"]
    lines += [f"    {name}: {cost:.3e}" for name, cost in costs.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
