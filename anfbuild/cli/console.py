"""Lines and tables for people, on whatever is at the other end: a terminal, a file, a pipe that closes early."""

from __future__ import annotations

import dataclasses
import os
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
        write(f"{text}\n", self._stream)

    def table(self, rows: Sequence[Sequence[str]], headings: Sequence[str] = ()) -> None:
        """Print columns: by rich on a terminal, else as aligned plain text."""
        if self._stream.isatty():
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
        console = RichConsole(file=self._stream)  # honours NO_COLOR
        with console.capture() as captured:
            console.print(table)
        write(captured.get(), self._stream)

    @property
    def _stream(self) -> TextIO:
        return sys.stderr if self.use_stderr else sys.stdout


def write(text: str, stream: TextIO) -> None:
    """Write and flush; what the stream's encoding lacks is written as an escape.

    A closed pipe is replaced by nothing, for the interpreter's own last flush too.
    """
    encoding = stream.encoding or "utf-8"  # io.StringIO has none
    text = text.encode(encoding, "backslashreplace").decode(encoding)
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
