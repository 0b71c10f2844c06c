"""How far the predicted peak memory is from what AI Hub measured, each family of models predicted by a fit without it.

python benchmarks/memory.py    the table, and the fitted constants of anfbuild/simulator/memory.py; compiles nothing
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from fidelity import CHIPS, DATA

from anfbuild.simulator.memory import CONSTANTS, ELSEWHERE


class Row(NamedTuple):
    """A measurement: MB, and what the peak is predicted from."""

    chip: str
    family: str
    precision: str
    peak_mb: float
    weights_mb: float
    entries: int


def load() -> list[Row]:
    """The measurements of all chips of which the compile's features are known."""
    features = {(row["model"], row["precision"]): row for row in _read("features.csv")}
    weights = {row["model"]: int(row["weights"]) for row in _read("sizes.csv")}
    rows = []
    for row in _read("measured.csv"):
        found = features.get((row["model"], row["precision"]))
        known = found is not None and row["model"] in weights and row["runtime"] == "qnn_dlc" and row["peak_mem_mb"]
        if known and found is not None and row["chipset"] in CHIPS:
            width = 2 if row["precision"] == "float" else 1
            rows.append(
                Row(
                    *(CHIPS[row["chipset"]], row["family"], row["precision"], float(row["peak_mem_mb"])),
                    *(weights[row["model"]] * width / 1e6, int(found["entries"])),
                )
            )
    return rows


def _read(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def fit(rows: Sequence[Row]) -> np.ndarray:
    """The constants of a chip with the least squares of relative errors; what would be negative is 0."""
    works, measured = _works(rows), np.array([max(row.peak_mb, 1.0) for row in rows])
    kept = list(range(works.shape[1]))
    while True:
        found, *_ = np.linalg.lstsq(works[:, kept] / measured[:, None], np.ones(len(rows)), rcond=None)
        if (found >= 0).all():
            break
        kept.pop(int(np.argmin(found)))
    constants = np.zeros(works.shape[1])
    constants[kept] = found
    return constants


def _works(rows: Sequence[Row]) -> np.ndarray:
    return np.array([(1.0, row.weights_mb, row.entries / 1e3) for row in rows])


def cross_validate(rows: Sequence[Row]) -> np.ndarray:
    """Predicted over measured of one chip's rows, by a fit that saw no model of the family."""
    ratios = np.zeros(len(rows))
    for family in {row.family for row in rows}:
        inside = np.array([row.family == family for row in rows])
        found = fit([row for row, is_in in zip(rows, inside, strict=True) if not is_in])
        own = [row for row in rows if row.family == family]
        ratios[inside] = _works(own) @ found / [max(row.peak_mb, 1.0) for row in own]
    return ratios


def table(rows: Sequence[Row], ratios: np.ndarray) -> None:
    """Print the errors by precision and of all."""
    for name in (*sorted({row.precision for row in rows}), ""):
        errors = np.abs(ratios[[name in row.precision for row in rows]] - 1)
        print(f"{name or 'all':10} {len(errors):5} {np.median(errors):7.1%} {np.quantile(errors, 0.9):7.1%}")


def main() -> None:
    rows = load()
    print(f"{'chip':10} {'rows':>5} {'median':>7} {'p90':>7}   process MB, copies, KB an entry: fitted, shipped")
    judged: list[Row] = []
    ratios: list[float] = []
    for chip in sorted(CONSTANTS):
        own = [row for row in rows if row.chip == chip]
        found = cross_validate(own)
        errors, fitted = np.abs(found - 1), [round(value, 2) for value in fit(own).tolist()]
        print(f"{chip:10} {len(own):5} {np.median(errors):7.1%} {np.quantile(errors, 0.9):7.1%}   {fitted}, "
              f"{list(CONSTANTS[chip])}")  # fmt: skip
        judged += own
        ratios += found.tolist()
    table(judged, np.array(ratios))
    print("all chips in one fit:", [round(value, 2) for value in fit(judged).tolist()], "shipped:", list(ELSEWHERE))
    for chip in sorted({row.chip for row in rows} - set(CONSTANTS)):
        peaks = [row.peak_mb for row in rows if row.chip == chip]
        print(f"left out: {chip}, whose peaks are {np.median(peaks):.0f} MB in the median, {max(peaks):.0f} at most")


if __name__ == "__main__":
    main()
