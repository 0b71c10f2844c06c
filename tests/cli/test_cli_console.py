from __future__ import annotations

import contextlib
import io

import pytest

from anfbuild.cli.console import Console


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


ROWS = [("latency", "13 ms", "[10, 16]"), ("accuracy drop", "0.01", "[/red]")]


def test_plain_columns() -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        Console().table(ROWS, headings=("figure", "value", "interval"))
    assert out.getvalue().splitlines() == [
        "figure         value  interval",
        "latency        13 ms  [10, 16]",
        "accuracy drop  0.01   [/red]",
    ]


def test_a_terminal_gets_a_table_and_no_cell_is_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    with contextlib.redirect_stdout(Terminal()) as out:
        Console().table(ROWS, headings=("figure", "value", "interval"))
    text = out.getvalue()
    assert "──" in text
    assert "[/red]" in text
    assert "\x1b[3" not in text  # no colours


def test_standard_error() -> None:
    with contextlib.redirect_stderr(io.StringIO()) as error, contextlib.redirect_stdout(io.StringIO()) as out:
        Console(use_stderr=True).print("step")
    assert (error.getvalue(), out.getvalue()) == ("step\n", "")
