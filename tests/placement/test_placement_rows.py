from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.placement import COLUMNS, Row, read_csv, write_csv

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
START = st.sampled_from(["=", "+", "-", "@", "\t", "\r", "\n", "'", "'=", ""])


def row(node: str = "a", reason: str = "", ms: float | None = None) -> Row:
    return Row(node, "Relu", "HTP", 3, ms, "a", reason, "")


@given(name=TEXT, start=START)
def test_any_name_survives_the_csv_and_none_is_a_formula(
    tmp_path_factory: pytest.TempPathFactory, name: str, start: str
) -> None:
    path = tmp_path_factory.mktemp("csv") / "placement.csv"
    rows = [row(start + name, 'a "reason", with\nlines', 0.25), row()]
    write_csv(rows, path)
    assert read_csv(path) == rows
    with path.open(encoding="utf-8", newline="") as file:
        header, first, _ = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert not first[0].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_csv([row(), row("b", ms=1.5)], tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert b"\r" not in (tmp_path / "a").read_bytes()


@pytest.mark.parametrize(
    ("op_type", "unit", "compute"),
    [("Conv", "CPU", True), ("Conv", "folded", False), ("Conv", "removed", False), ("QuantizeLinear", "CPU", False)],
)
def test_what_counts_as_work(op_type: str, unit: str, compute: bool) -> None:
    assert Row("n", op_type, unit, 0, None, "", "", "").compute is compute  # type: ignore[arg-type]
