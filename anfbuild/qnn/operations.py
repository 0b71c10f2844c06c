"""Reads the schematic's run list: what the HTP does in one inference, operation by operation, in the compiler's order.

The compiler splits the graph into tiles and orders them for one main thread. Matrix operations run on that thread.
Vector and DMA operations run beside it: one entry of the list starts them, and a later one waits for their end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

from anfbuild.errors import StepError
from anfbuild.qnn.schematic import section

Engine = Literal["matrix", "vector", "dma", "main"]
"""Who does an operation: the matrix engine, the vector threads, the DMA; "main" is a mark for the main thread alone."""

_AFTER = ("graph_after_optimization = {", "# :::END:graph_after_optimization")
_BANDWIDTH = ("bandwidth_information = [", "]")
_RUN_LIST = ("opdesc_map ={", "} # end of opdesc")
_NOT_RUN = "ops not in runlist"

_NODE = re.compile(r"\n\t0x([0-9a-f]+): \{(.*?)\n\t\},", re.S)
_INPUT = re.compile(r"\(0x([0-9a-f]+),\d+\)")
_DIMS = re.compile(r"'dims': \[([\d,]*)\]")
_DTYPE = re.compile(r"'dtype': '(\w+)'")
_BYTES = re.compile(
    r'"opid" : 0x([0-9a-f]+) , "dram_read": ([0-9]{1,18}) , "dram_write": ([0-9]{1,18}) , '
    r'"vtcm_read": ([0-9]{1,18}) , "vtcm_write": ([0-9]{1,18})'
)
_ENTRY = re.compile(r"'#(\d+)': opdesc\( (.*?)\n  \),", re.S)
_HEAD = re.compile(r'0x([0-9a-f]+), "([^"\n]*)".*?runlist_pos = (\d+)', re.S)
_FLAGS = re.compile(r"op_flags=\((.*?)\)")
_AFTER_OPS = re.compile(r"\n      csts_in = \((.*?)\)", re.S)
_KEY = re.compile(r"#(\d+)")
_PRODUCT = re.compile("conv|matmul|fully|gemm|mmul", re.I)
_WIDTHS = {"QUInt16": "16", "QInt16": "16", "Float16": "float", "Float32": "float"}

_ROWS = 8
_CHANNELS = 32
"""The matrix engine takes 8 × 8 positions and 32 × 32 channels at a time; what does not fill a block is padded."""


@dataclass(frozen=True)
class Operation:
    """One entry of the run list.

    `waits` is the position of the operation whose end this entry waits for, None for one that does something itself.
    `macs` are the multiply-accumulates of a matrix operation, `padded` the same in whole blocks of the engine. Bytes
    are those of one inference. `width` is that of the result: "8", "16" or "float".
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


_COLUMNS = ("name", "engine", "waits", "dram_read", "dram_write", "vtcm", "macs", "padded", "width")


def read(text: str) -> tuple[Operation, ...]:
    """The operations of one graph's schematic, in order, those left out that only give bytes another name.

    Raises StepError that names the section it cannot read.
    """
    nodes = _Nodes(section(text, _AFTER))
    moved = {int(ident, 16): tuple(map(int, found)) for ident, *found in _BYTES.findall(section(text, _BANDWIDTH))}
    entries = sorted(_entries(section(text, _RUN_LIST)))
    if not entries:
        raise StepError("the compiler's schematic has no operation in section 'opdesc_map'")
    kept = [entry for entry in entries if "NULL_EXEC" not in entry.flags]
    position = {entry.key: index for index, entry in enumerate(kept)}
    return tuple(_operation(entry, position, nodes, moved) for entry in kept)


def join(parts: Sequence[tuple[Operation, ...]]) -> tuple[Operation, ...]:
    """The operations of several graphs, one after the other."""
    joined: list[Operation] = []
    for part in parts:
        base = len(joined)
        joined += [Operation(**{**vars(op), "waits": None if op.waits is None else op.waits + base}) for op in part]
    return tuple(joined)


def to_json(operations: Sequence[Operation]) -> dict[str, list[object]]:
    """Columns that `from_json` reads back; names are numbered, since few are distinct."""
    names = sorted({op.name for op in operations})
    number = {name: index for index, name in enumerate(names)}
    columns: dict[str, list[object]] = {column: [getattr(op, column) for op in operations] for column in _COLUMNS}
    columns["name"] = [number[op.name] for op in operations]
    return {"names": list(names), **columns}


def from_json(document: Mapping[str, Any]) -> tuple[Operation, ...]:
    """Raises StepError for an object that `to_json` did not write."""
    try:
        names = document["names"]
        rows = zip(*(document[column] for column in _COLUMNS), strict=True)
        operations = tuple(Operation(names[row[0]], *row[1:]) for row in rows)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise StepError(f"this is not a record of compiled operations: {error!r}") from error
    for index, op in enumerate(operations):
        if op.engine not in get_args(Engine) or (op.waits is not None and not 0 <= op.waits < index):
            raise StepError(f"this is not a record of compiled operations: {op}")
    return operations


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

    def width(self, ident: int) -> str:
        found = _DTYPE.search(self._bodies.get(ident, ""))
        return _WIDTHS.get(found[1], "8") if found else "8"

    def products(self, ident: int) -> tuple[int, int]:
        """(MACs, MACs in whole blocks) of a convolution or what was made one: output NHWC, weights HWIO."""
        body = self._bodies.get(ident, "")
        shapes = [self._dims(int(given, 16)) for given in _INPUT.findall(body)[:2]]
        result = self._dims(ident)
        if len(shapes) < 2 or len(result) != 4 or len(shapes[1]) != 4:
            return 0, 0
        batch, height, width, channels = result
        kernel_height, kernel_width, given, _ = shapes[1]
        taps = batch * kernel_height * kernel_width
        blocks = _up(height, _ROWS) * _up(width, _ROWS) * _up(channels, _CHANNELS) * _up(given, _CHANNELS)
        return taps * height * width * channels * given, taps * blocks

    def _dims(self, ident: int) -> list[int]:
        found = _DIMS.search(self._bodies.get(ident, ""))
        return [int(size) for size in found[1].split(",") if size] if found else []


def _operation(
    entry: _Entry, position: Mapping[str, int], nodes: _Nodes, moved: Mapping[int, tuple[int, ...]]
) -> Operation:
    engine = _engine(entry.flags)
    if "MOVE_LATE" in entry.flags:
        started = [position[key] for key in entry.after if key in position]
        return Operation(entry.name, engine, waits=min(started)) if started else Operation(entry.name, "main")
    dram_read, dram_write, vtcm_read, vtcm_write = moved.get(entry.ident, (0, 0, 0, 0))
    macs, padded = nodes.products(entry.ident) if engine == "matrix" and _PRODUCT.search(entry.name) else (0, 0)
    return Operation(
        entry.name,
        engine,
        dram_read=dram_read,
        dram_write=dram_write,
        vtcm=vtcm_read + vtcm_write,
        macs=macs,
        padded=padded,
        width=nodes.width(entry.ident),
    )


def _engine(flags: str) -> Engine:
    marks = {"RESOURCE_HMX": "matrix", "FOR_DMA": "dma", "FOR_HVX": "vector"}
    return cast(Engine, next((engine for mark, engine in marks.items() if mark in flags), "main"))


def _up(size: int, block: int) -> int:
    return -(-size // block) * block
