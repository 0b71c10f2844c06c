"""Reads the schematic that the HTP compiler leaves beside a context binary, for its DRAM traffic.

The file is text: Python literals between section marks. `bandwidth_information` has the bytes of every HTP op,
`opdesc_map` says which of these ops are spills (VTCM → DRAM because VTCM is full) and fills (back).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from anfbuild.errors import StepError

_BANDWIDTH = ("bandwidth_information = [", "]")
RUN_LIST = ("opdesc_map ={", "} # end of opdesc")
_ENTRY = re.compile(
    r'\{"opid" : (0x[0-9a-f]+) , "dram_read": ([0-9]{1,18}) , "dram_write": ([0-9]{1,18}) , '
    r'"vtcm_read": ([0-9]{1,18}) , "vtcm_write": ([0-9]{1,18}), "is_dma": [01]\}'
)
_MOVE = re.compile(r'opdesc\( (0x[0-9a-f]+), "@(Spill|Fill)"')


@dataclass(frozen=True)
class Traffic:
    """DRAM bytes of one inference. Spills are part of the written bytes, fills of the read ones."""

    read: int
    write: int
    spill: int
    fill: int

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.read + other.read, self.write + other.write, self.spill + other.spill, self.fill + other.fill
        )


class Moved(NamedTuple):
    """Bytes that one HTP op moves in an inference."""

    dram_read: int
    dram_write: int
    vtcm_read: int
    vtcm_write: int


def read(text: str) -> Traffic:
    """The DRAM traffic of one graph's schematic. Raises StepError that names the section it cannot read."""
    moves = moved(text)
    kinds = {int(op, 16): kind for op, kind in _MOVE.findall(section(text, RUN_LIST))}
    total = Traffic(0, 0, 0, 0)
    for op, (came, went, *_) in moves:
        kind = kinds.get(op)
        total += Traffic(came, went, went if kind == "Spill" else 0, came if kind == "Fill" else 0)
    return total


def moved(text: str) -> list[tuple[int, Moved]]:
    """(number of the op, its bytes) for every entry. Raises StepError for an entry of another form."""
    part = section(text, _BANDWIDTH)
    entries = _ENTRY.findall(part)
    if len(entries) != part.count("{"):
        raise StepError("the compiler's schematic has an entry of another form in section 'bandwidth_information'")
    return [(int(op, 16), Moved(*map(int, counts))) for op, *counts in entries]


def section(text: str, marks: tuple[str, str]) -> str:
    """What is between the two marks. Raises StepError where they are not there."""
    start = text.find(marks[0])
    end = text.find(marks[1], start)
    if start < 0 or end < 0:
        raise StepError(
            f"the compiler's schematic has no section {marks[0].split()[0]!r}",
            remedy="This version of onnxruntime-qnn writes another form: use one of the version matrix.",
        )
    return text[start + len(marks[0]) : end]
