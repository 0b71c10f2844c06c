"""Reads the schematic's run list: what the HTP does in one inference, operation by operation, in the compiler's order.

The compiler splits the graph into tiles and orders them for one main thread. Matrix operations run on that thread.
Vector and DMA operations run beside it: one entry of the list starts them, and a later one waits for their end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from anfbuild.errors import StepError
from anfbuild.qnn.schematic import RUN_LIST, Moved, moved, section

Engine = Literal["matrix", "vector", "dma", "main"]
"""Who does an operation: the matrix engine, the vector threads, the DMA; "main" is a mark for the main thread alone."""

_AFTER = ("graph_after_optimization = {", "# :::END:graph_after_optimization")
_NOT_RUN = "ops not in runlist"

_NODE = re.compile(r"\n\t0x([0-9a-f]+): \{(.*?)\n\t\},", re.S)
_INPUT = re.compile(r"\(0x([0-9a-f]+),\d+\)")
_DIMS = re.compile(r"'dims': \[([\d,]*)\]")
_DTYPE = re.compile(r"'dtype': '(\w+)'")
_ENTRY = re.compile(r"'#(\d+)': opdesc\( (.*?)\n  \),", re.S)
_HEAD = re.compile(r'0x([0-9a-f]+), "([^"\n]*)".*?runlist_pos = (\d+)', re.S)
_FLAGS = re.compile(r"op_flags=\((.*?)\)")
_AFTER_OPS = re.compile(r"\n      csts_in = \((.*?)\)", re.S)
_KEY = re.compile(r"#(\d+)")
_MARKS: Mapping[str, Engine] = {"RESOURCE_HMX": "matrix", "FOR_DMA": "dma", "FOR_HVX": "vector"}
_SYNC = "@Sync"
"""The one entry of the main thread that is known: it waits."""
_WIDTHS = {
    **dict.fromkeys(("QUInt8", "QInt8", "UInt8", "Int8", "Bool"), "8"),
    **dict.fromkeys(("QUInt16", "QInt16", "QInt32", "Int32", "UInt32", "Int16", "UInt16"), "16"),
    **dict.fromkeys(("Float16", "Float32"), "float"),
}

_ROWS = 8
_COLUMNS = {"8": 8, "16": 4, "float": 4}
_CHANNELS = 32
"""The matrix engine takes 8 × 8 positions (8 × 4 of two bytes each) and 32 × 32 channels at a time; what does not fill
a block is padded. Of a depthwise convolution it takes whole blocks of channels too; an input that has fewer channels
than a block is taken as it is."""


@dataclass(frozen=True)
class Operation:
    """One entry of the run list.

    `waits` is the position of the operation whose end this entry waits for, None for one that does something itself.
    `macs` are the multiply-accumulates of a matrix operation, `padded` the same in whole blocks of the engine. Bytes
    are those of one inference. `width` is that of the result: "8", "16" or "float". `level` counts the entries on the
    longest chain, each waiting for the one before, that ends here. `doubt` says what is not known of the entry.
    """

    name: str
    engine: Engine
    waits: int | None = None
    dram_read: int = 0
    dram_write: int = 0
    vtcm: int = 0
    macs: int = 0
    padded: int = 0
    width: str = "8"
    level: int = 1
    doubt: str | None = None


def read(text: str) -> tuple[Operation, ...]:
    """The operations of one graph's schematic, in order, those left out that only give bytes another name.

    Raises StepError that names the section it cannot read.
    """
    nodes = _Nodes(section(text, _AFTER))
    moves = dict(moved(text))
    entries = sorted(_entries(section(text, RUN_LIST)))
    if not entries:
        raise StepError("the compiler's schematic has no operation in section 'opdesc_map'")
    kept = [entry for entry in entries if "NULL_EXEC" not in entry.flags]
    position = {entry.key: index for index, entry in enumerate(kept)}
    found: list[Operation] = []
    for index, entry in enumerate(kept):
        before = [position[key] for key in entry.after if position.get(key, index) < index]
        operation = _operation(entry, before, nodes, moves)
        found.append(replace(operation, level=1 + max((found[given].level for given in before), default=0)))
    return tuple(found)


def join(parts: Sequence[tuple[Operation, ...]]) -> tuple[Operation, ...]:
    """The operations of several graphs, one after the other."""
    joined: list[Operation] = []
    for part in parts:
        base, top = len(joined), max((op.level for op in joined), default=0)
        joined += [
            replace(op, level=op.level + top, waits=None if op.waits is None else op.waits + base) for op in part
        ]
    return tuple(joined)


@dataclass(frozen=True, order=True)
class _Entry:
    position: int
    key: str
    ident: int
    name: str
    flags: str
    after: tuple[str, ...]


def _entries(text: str) -> Iterator[_Entry]:
    for key, body in _ENTRY.findall(text.partition(_NOT_RUN)[0]):
        head = _HEAD.match(body)
        if head is None:
            continue  # not in the run list
        flags, after = _FLAGS.search(body), _AFTER_OPS.search(body)
        yield _Entry(
            int(head[3]),
            key,
            int(head[1], 16),
            head[2],
            flags[1] if flags else "",
            tuple(_KEY.findall(after[1])) if after else (),
        )


class _Nodes:
    """What the optimised graph says of each operation: shapes and the type of its result."""

    def __init__(self, text: str) -> None:
        self._bodies = {int(ident, 16): body for ident, body in _NODE.findall(text)}

    def width(self, ident: int) -> str | None:
        """None for a type that is not in the table."""
        found = _DTYPE.search(self._bodies.get(ident, ""))
        return _WIDTHS.get(found[1]) if found else None

    def products(self, ident: int, width: str) -> tuple[int, int] | None:
        """(MACs, MACs in whole blocks) of a convolution or what was made one: output NHWC, weights HWIO.

        None where it is neither.
        """
        given = [self._dims(int(name, 16)) for name in _INPUT.findall(self._bodies.get(ident, ""))[:2]]
        result = self._dims(ident)
        if len(given) < 2 or not len(result) == len(given[1]) == 4:
            return None
        batch, rows, columns, channels = result
        kernel_rows, kernel_columns, depth, _ = given[1]
        taps = batch * kernel_rows * kernel_columns
        positions = _up(rows, _ROWS) * _up(columns, _COLUMNS[width])
        whole = depth if given[0][3:] and given[0][3] <= depth else _up(depth, _CHANNELS)
        return taps * rows * columns * channels * depth, taps * positions * _up(channels, _CHANNELS) * whole

    def _dims(self, ident: int) -> list[int]:
        found = _DIMS.search(self._bodies.get(ident, ""))
        return [int(size) for size in found[1].split(",") if size] if found else []


def _operation(entry: _Entry, before: Sequence[int], nodes: _Nodes, moves: Mapping[int, Moved]) -> Operation:
    engine = next((engine for mark, engine in _MARKS.items() if mark in entry.flags), None)
    if "MOVE_LATE" in entry.flags:
        return Operation(entry.name, engine or "main", waits=min(before)) if before else Operation(entry.name, "main")
    if engine is None:
        doubt = None if entry.name == _SYNC else "no engine is named"
        return Operation(entry.name, "main", doubt=doubt)
    found = nodes.width(entry.ident)
    width = found or "8"
    doubt = "its type is not known" if found is None and engine == "matrix" else None
    products = nodes.products(entry.ident, width) if engine == "matrix" else (0, 0)
    if products is None:
        doubt = "its shapes are not those of a product"
    macs, padded = products or (0, 0)
    bytes_ = moves.get(entry.ident, Moved(0, 0, 0, 0))
    return Operation(
        entry.name,
        engine,
        dram_read=bytes_.dram_read,
        dram_write=bytes_.dram_write,
        vtcm=bytes_.vtcm_read + bytes_.vtcm_write,
        macs=macs,
        padded=padded,
        width=width,
        doubt=doubt,
    )


def _up(size: int, block: int) -> int:
    return -(-size // block) * block
