"""Measured latencies of models on a chip, read from a CSV file and checked whole before anything is made of them."""

from __future__ import annotations

import csv
import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from anfbuild.cli.targets import Chip, check_scheme
from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.quantization import FP16

SCHEMES = {"w8a8": "int8_per_channel", "w8a16": "a16w8_per_channel", "float": FP16}
"""Precision, as measurements call it -> the scheme whose compile tells the work."""
_NEEDED = ("model", "precision", "latency_ms")
_CHIP = ("soc_model", "chipset")
_UNIT = ("primary_unit", "primary", "layers_gpu", "layers_cpu")
_MEMORY = ("mem_min_mb", "mem_max_mb", "peak_mem_mb")
_NOT_READ = ("htp_arch", "runtime", "component", "qairt", "job_id", "layers_npu", *_MEMORY)
COLUMNS = (*_NEEDED, "family", *_CHIP, *_UNIT, *_NOT_READ)
"""Those of a file of one's own, and those of AI Hub's measurements."""
_SUFFIXES = ("", ".onnx", ".tflite", ".pt2")
"""What a model's name may lack of its file's."""
_LEAST_MS, _LONGEST_MS = 1e-3, 1e5
_LONGEST_CELL = 200


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One measured latency."""

    line: int
    model: Path
    family: str
    """Models alike, which are left out together when a fit is judged: the model itself, where the file says none."""
    precision: str
    latency_ms: float


@dataclasses.dataclass(frozen=True)
class Measured:
    """What a file says of one chip."""

    rows: Sequence[Measurement]
    passed_over: Mapping[str, int]
    """Why -> how many of its rows say nothing of the chip."""


def read_measurements(path: Path, folder: Path, target: Chip, least: int) -> Measured:
    """The measurements of `target` in a CSV file; its models lie in `folder`. Of AI Hub's rows, those of other chips
    and those that ran on another unit are passed over.

    Raises RecipeError that names the line of what is wrong: a column that is unknown, missing or twice, a cell too many
    or too few, a latency that is no positive number of milliseconds, an unknown precision or one that the chip does not
    compute in, a model that is not there, a model and precision twice, fewer than `least` models.
    """
    lines = _lines(path)
    rows: list[Measurement] = []
    passed_over: Counter[str] = Counter()
    for line, values in lines:
        row = _row(values, line, path, folder)
        why = _not_of(values, line, path, target)
        if why is not None:
            passed_over[why] += 1
            continue
        scheme = SCHEMES[row.precision]
        try:
            check_scheme(scheme, target)
        except RecipeError as error:
            raise RecipeError(error.what, where=f"{path}:{line}", remedy="Remove the row, or correct it.") from error
        same = next((one for one in rows if (one.model, one.precision) == (row.model, row.precision)), None)
        if same is not None:
            raise RecipeError(
                f"{values['model']} in {row.precision} is measured in line {same.line} already",
                where=f"{path}:{line}",
                remedy="Keep one row of a model and precision.",
            )
        rows.append(row)
    models = len({row.model for row in rows})
    if models < least:
        said = "".join(f", {count} rows: {why}" for why, count in passed_over.items())
        raise RecipeError(
            f"{models} models measured on {target.name} are too few{said}",
            where=f"{path}:{lines[-1][0] if lines else 1}",
            remedy=f"Measure {least} at least; 10 do better.",
        )
    return Measured(rows, dict(passed_over))


def _lines(path: Path) -> list[tuple[int, dict[str, str]]]:
    """Line number and cells by column of each row."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            columns = [column.strip() for column in next(reader, [])]
            _check_columns(columns, path)
            found = [(reader.line_num, cells) for cells in reader if cells]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RecipeError(
            f"the measurements cannot be read: {error}", where=str(path), remedy="Give a CSV file in UTF-8."
        ) from error
    for line, cells in found:
        if len(cells) != len(columns):
            raise RecipeError(
                f"{len(cells)} cells for {len(columns)} columns",
                where=f"{path}:{line}",
                remedy="Give each column one cell; quote a cell that holds a comma.",
            )
    return [(line, dict(zip(columns, map(str.strip, cells), strict=True))) for line, cells in found]


def _check_columns(columns: Sequence[str], path: Path) -> None:
    where = f"{path}:1"
    for column, count in Counter(columns).items():
        if column not in COLUMNS:
            unit = " Latencies are in milliseconds: give latency_ms." if column.startswith(("latency", "time")) else ""
            raise RecipeError(
                f"unknown column {column!r}",
                where=where,
                choices=COLUMNS,
                remedy=f"{did_you_mean(column, COLUMNS)}Rename or remove it.{unit}",
            )
        if count > 1:
            raise RecipeError(f"the column {column!r} is there {count} times", where=where, remedy="Keep one of them.")
    for column in _NEEDED:
        if column not in columns:
            raise RecipeError(
                f"there is no column {column!r}", where=where, choices=_NEEDED, remedy="Name the columns in line 1."
            )


def _row(values: Mapping[str, str], line: int, path: Path, folder: Path) -> Measurement:
    where = f"{path}:{line}"
    precision = values["precision"]
    if precision not in SCHEMES:
        raise RecipeError(
            f"unknown precision {precision[:_LONGEST_CELL]!r}",
            where=where,
            choices=SCHEMES,
            remedy=f"{did_you_mean(precision, SCHEMES)}Correct it, or remove the row.",
        )
    try:
        latency = float(values["latency_ms"])
    except ValueError:
        latency = math.nan
    if not _LEAST_MS <= latency <= _LONGEST_MS:
        raise RecipeError(
            f"latency_ms is {values['latency_ms'][:_LONGEST_CELL]!r}, which is no number between {_LEAST_MS:g} and "
            f"{_LONGEST_MS:g}",
            where=where,
            remedy="Give milliseconds, the number alone.",
        )
    name = values["model"]
    beside = [folder / f"{name}{suffix}" for suffix in _SUFFIXES] if name and "\0" not in name else []
    model = next((file for file in beside if file.is_file()), None)
    if model is None:
        raise RecipeError(
            f"there is no model file {name[:_LONGEST_CELL]!r} in {folder}",
            where=where,
            remedy="Name the folder that the models lie in with --models FOLDER, or remove the row.",
        )
    return Measurement(line, model, values.get("family") or model.stem, precision, latency)


def _not_of(values: Mapping[str, str], line: int, path: Path, target: Chip) -> str | None:
    """Why a row says nothing of the chip's HTP, by the columns that AI Hub's measurements have."""
    soc_model = values.get("soc_model", "")
    if soc_model and soc_model != str(target.values["soc_model"]):
        return "another chip"
    if values.get("chipset") and not soc_model:
        raise RecipeError(
            f"nothing says whether {values['chipset'][:_LONGEST_CELL]!r} is {target.name}",
            where=f"{path}:{line}",
            remedy=f"Add a column soc_model ({target.values['soc_model']} is {target.name}), or remove chipset.",
        )
    unit = values.get("primary_unit") or values.get("primary") or "NPU"
    elsewhere = any(values.get(key, "") not in ("", "0") for key in ("layers_gpu", "layers_cpu"))
    return "in part on another unit than the HTP" if unit != "NPU" or elsewhere else None
