from __future__ import annotations

import contextlib
import io
import sys

import pytest

from anfbuild.cli.console import Console, write


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


HOSTILE = "a\x1b[31mb\x07\r\x7f\x9bc\td\n"
SHOWN = "a\\x1b[31mb\\x07\\x0d\\x7f\\x9bc\td\n"


def test_control_characters_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as out:
        Console().print(HOSTILE)
        Console().table([(HOSTILE.strip(), "x")])
    assert out.getvalue() == f"{SHOWN}\n{SHOWN.strip()}  x\n"
    monkeypatch.setenv("TERM", "dumb")
    with contextlib.redirect_stdout(Terminal()) as out:
        Console().table([("a\x1b]0;title\x07", "x")])
    assert "a\\x1b]0;title\\x07" in out.getvalue()


def test_no_stream_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    Console().print("gone")
    Console().table(ROWS)
    write("gone", None)
