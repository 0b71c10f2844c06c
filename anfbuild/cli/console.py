"""Lines and tables for people, on whatever is at the other end: a terminal, a file, a pipe that closes early, a full
disk, nothing at all."""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Sequence
from typing import TextIO


@dataclasses.dataclass(frozen=True)
class Console:
    """Prints to stdout, or to stderr where stdout belongs to a JSON document.

    It holds no stream, so that it can be sent to a worker process.
    """

    use_stderr: bool = False

    def print(self, text: str = "") -> None:
        """Print a line now. When the reader has gone, go on in silence: a build must not die of `| head`."""
        write(f"{visible(text)}\n", self.stream)

    def table(self, rows: Sequence[Sequence[str]], headings: Sequence[str] = ()) -> None:
        """Print columns: by rich on a terminal, else as aligned plain text."""
        rows = [[visible(cell) for cell in row] for row in rows]
        if self.is_terminal:
            self._rich_table(rows, headings)
            return
        lines = [list(headings), *map(list, rows)] if headings else [list(row) for row in rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            self.print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())

    def _rich_table(self, rows: Sequence[Sequence[str]], headings: Sequence[str]) -> None:
        from rich.box import SIMPLE
        from rich.console import Console as RichConsole
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE, show_header=bool(headings), pad_edge=False)
        for heading in headings or [""] * max(map(len, rows), default=0):
            table.add_column(heading, overflow="fold")
        for row in rows:
            table.add_row(*map(Text, row))  # as Text, since a value may hold brackets that are no markup
        console = RichConsole(file=self.stream)  # honours NO_COLOR
        with console.capture() as captured:
            console.print(table)
        write(captured.get(), self.stream)

    @property
    def is_terminal(self) -> bool:
        """Whether somebody watches."""
        return self.stream is not None and self.stream.isatty()

    @property
    def stream(self) -> TextIO | None:
        """Where it prints at this moment."""
        return sys.stderr if self.use_stderr else sys.stdout


def visible(text: str) -> str:
    """`text` with control characters but newlines and tabs as escapes: a tensor's name must not steer the terminal."""
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


def open_streams() -> None:
    """Open the null device for each standard stream that the process was started without.

    Else a file of a build would be opened under its number, and be written to by whatever prints. From 0 upwards, as
    the lowest free number is what a file gets.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115  # for the process's life
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)


def write(text: str, stream: TextIO | None) -> None:
    """Write and flush; what the stream's encoding lacks is written as an escape.

    A stream that takes nothing, as a closed pipe or a full disk, is replaced by one that takes all, for the
    interpreter's own last flush too: what could not be told does not change a build.
    """
    if stream is None or stream.closed:
        return
    encoding = stream.encoding or "utf-8"  # io.StringIO has none
    text = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
