"""The placement table: a row a node of the source model, as a CSV file that a spreadsheet may open."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Literal, cast

QDQ = ("QuantizeLinear", "DequantizeLinear")
# A spreadsheet takes a cell that begins so for a formula. Source: OWASP, "CSV Injection".
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_QUOTE = "'"

Unit = Literal["HTP", "GPU", "CPU", "folded", "removed"]
UNITS = ("htp", "gpu", "cpu")
"""As results.json calls those that work runs on."""


@dataclass(frozen=True)
class Row:
    """One node of the source model, or one that the build put in.

    `unit` "folded": a constant, it runs nowhere; "removed": nothing is left of it. `macs`: multiply-accumulates of one
    inference. `ms`: its share of the predicted time, None where the cost model has none for it. `became`: the nodes
    of the QDQ model that do its work, the first ones by name. `reason` says in plain words why the node is where it
    is, empty for a plain node of the HTP; `compiler` is the compiler's own text.
    """

    node: str
    op_type: str
    unit: Unit
    macs: int
    ms: float | None
    became: str
    reason: str
    compiler: str

    @property
    def compute(self) -> bool:
        """Whether the node counts as work: no Q/DQ, not folded, not removed."""
        return self.op_type not in QDQ and self.unit not in ("folded", "removed")


COLUMNS = tuple(field.name for field in fields(Row))


def share(amounts: Mapping[str, float]) -> dict[str, float | None]:
    """Each amount as a fraction of their sum; None where that is 0."""
    total = sum(amounts.values())
    return {name: amount / total if total else None for name, amount in amounts.items()}


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Writes the rows under COLUMNS, a None as an empty cell. The same rows give the same bytes."""
    write_cells(path, COLUMNS, map(astuple, rows))


def read_csv(path: Path) -> list[Row]:
    """The rows that `write_csv` wrote."""
    with path.open(encoding="utf-8", newline="") as file:
        read = [{name: plain(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
    return [
        Row(
            row["node"],
            row["op_type"],
            cast(Unit, row["unit"]),
            int(row["macs"]),
            float(row["ms"]) if row["ms"] else None,
            *(row[name] for name in ("became", "reason", "compiler")),
        )
        for row in read
    ]


def write_cells(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a table of texts and numbers, with `safe` texts."""
    with path.open("w", encoding="utf-8", newline="") as file:
        # All texts are quoted: csv leaves a lone carriage return bare, and a reader would end the row there.
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(columns)
        writer.writerows([safe(cell) if isinstance(cell, str) else cell for cell in row] for row in rows)


def safe(text: str) -> str:
    """`text`, with a leading quote mark where a spreadsheet would run it as a formula; `plain` takes that away."""
    return f"{_QUOTE}{text}" if text.startswith((*_FORMULA, _QUOTE)) else text


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet would run the cell: `safe` makes none such."""
    return cell.startswith(_FORMULA)


def plain(cell: str) -> str:
    """The text that `safe` made this cell of."""
    return cell.removeprefix(_QUOTE)
