"""What the compiler's run list says about the time of an inference: the features of the latency model.

Sums over all operations say little, since matrix, vector and DMA work overlap. So the run list is played on a machine
with the reference rates below (about those of a Snapdragon 8 Gen 3), and the work is summed that lies on the longest
chain of operations that wait for one another. Rates of a chip are fitted to these sums afterwards.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from anfbuild.errors import StepError
from anfbuild.qnn.operations import Operation

VECTOR_THREADS = 4

# Reference rates in work per ms, and ms per operation. They only decide what overlaps with what.
_MACS = {"8": 28e9, "16": 28e9 / 2.5, "float": 28e9 / 3.8}
_MATRIX_BYTES = 280e6
_VECTOR_RATES = {"vector_bytes": 72e6, "copy_bytes": 120e6, "heavy_bytes": 58e6}
_DRAM_BYTES = 60e6
_START_MS = {"matrix": 6e-5, "vector": 6e-5, "dma": 6e-5, "main": 6e-5}
_VECTOR_MS = 4e-4
_DMA_MS = 1.3e-4

_HEAVY = re.compile(
    "softmax|norm|reduce|lookup|div|gather|argmax|d2s|s2d|transpose|decimate|prelu|x2s|moments|sigmoid|exp|gelu|table|"
    "resize|bilinear|interp",
    re.I,
)
"""Vector operations that change the order of values, look them up or reduce them: slower a byte than the others."""
_COPY = re.compile("concat|slice|reshape|pad|zap|format|copy|flatten|crouton|tile|split|vtcm", re.I)
"""Vector operations that only copy."""


@dataclasses.dataclass(frozen=True)
class Features:
    """One inference of a compiled graph. Bytes and multiply-accumulates (MACs) are counts; nothing depends on a clock.

    The first group is what lies on the longest chain, the second all there is.
    """

    path_macs_8: int = 0
    """Padded MACs of matrix operations with 8-bit results that are bound by them; so the next two."""
    path_macs_16: int = 0
    path_macs_float: int = 0
    path_matrix_bytes: int = 0
    """On-chip bytes of matrix operations that are bound by them."""
    path_vector_bytes: int = 0
    path_copy_bytes: int = 0
    path_heavy_bytes: int = 0
    """Bytes of vector operations that change the order of values, look them up or reduce them."""
    path_dram_bytes: int = 0
    path_starts: int = 0
    """Entries of the run list on the main thread."""
    path_vector_ops: int = 0
    path_dma_ops: int = 0

    all_macs_8: int = 0
    all_macs_16: int = 0
    all_macs_float: int = 0
    all_matrix_bytes: int = 0
    all_vector_bytes: int = 0
    all_copy_bytes: int = 0
    all_heavy_bytes: int = 0
    all_dram_bytes: int = 0
    all_starts: int = 0
    all_vector_ops: int = 0
    all_dma_ops: int = 0
    matrix_ops: int = 0
    macs: int = 0
    """As the operators define them, without what pads the engine's blocks."""
    vtcm_bytes: int = 0
    dram_read: int = 0
    dram_write: int = 0
    spill_bytes: int = 0
    """Written to DRAM and read back because on-chip memory was full."""
    reference_ms: float = 0.0
    """Length of the chain on the reference machine."""

    def to_json(self) -> dict[str, float]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Features:
        """Raises StepError for an object that `to_json` did not write."""
        if set(document) != {field.name for field in dataclasses.fields(cls)}:
            raise StepError("this is not a record of compiled features")
        return cls(**document)


def summarise(operations: Sequence[Operation]) -> Features:
    """The features of a run list (see `operations.read`)."""
    played = _play(operations)
    done = [op for op in operations if op.waits is None]
    path = _sum([*map(_main_work, map(operations.__getitem__, played.on_main))])
    path += _sum([*map(_beside_work, map(operations.__getitem__, played.beside))])
    everything = _sum([*map(_main_work, operations), *map(_beside_work, done)])
    return Features(
        **{f"path_{name}": amount for name, amount in path.items()},
        **{f"all_{name}": amount for name, amount in everything.items()},
        matrix_ops=sum(op.engine == "matrix" for op in done),
        macs=sum(op.macs for op in done),
        vtcm_bytes=sum(op.vtcm for op in done),
        dram_read=sum(op.dram_read for op in done),
        dram_write=sum(op.dram_write for op in done),
        spill_bytes=sum(op.dram_read + op.dram_write for op in done if op.name in ("@Spill", "@Fill")),
        reference_ms=round(played.end, 6),
    )


def work_by_name(operations: Sequence[Operation]) -> list[tuple[str, int, float]]:
    """(kind of operation, how many, ms on the reference machine, nothing overlapped), the dearest first."""
    count: Counter[str] = Counter()
    ms: defaultdict[str, float] = defaultdict(float)
    for op in operations:
        if op.waits is None and op.engine != "main":
            count[op.name] += 1
            ms[op.name] += _cost(op) / (VECTOR_THREADS if op.engine == "vector" else 1)
    return [(name, count[name], ms[name]) for name in sorted(ms, key=lambda name: (-ms[name], name))]


def _sum(works: Sequence[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for work in works:
        total.update(work)
    return total


def _main_work(op: Operation) -> dict[str, int]:
    """What an entry costs the main thread."""
    if op.engine != "matrix" or op.waits is not None:
        return {"starts": 1}
    if op.padded / _MACS[op.width] >= op.vtcm / _MATRIX_BYTES:
        return {"starts": 1, f"macs_{op.width}": op.padded}
    return {"starts": 1, "matrix_bytes": op.vtcm}


def _beside_work(op: Operation) -> dict[str, int]:
    """What an operation costs a vector thread or the DMA."""
    if op.engine == "dma":
        return {"dram_bytes": op.dram_read + op.dram_write, "dma_ops": 1}
    if op.engine != "vector":
        return {}
    return {_vector_kind(op.name): op.vtcm + op.dram_read + op.dram_write, "vector_ops": 1}


def _vector_kind(name: str) -> str:
    return "heavy_bytes" if _HEAVY.search(name) else "copy_bytes" if _COPY.search(name) else "vector_bytes"


def _cost(op: Operation) -> float:
    """Milliseconds of the operation itself on the reference machine."""
    if op.engine == "matrix":
        return max(op.padded / _MACS[op.width], op.vtcm / _MATRIX_BYTES)
    if op.engine == "dma":
        return (op.dram_read + op.dram_write) / _DRAM_BYTES + _DMA_MS
    if op.engine == "vector":
        return (op.vtcm + op.dram_read + op.dram_write) / _VECTOR_RATES[_vector_kind(op.name)] + _VECTOR_MS
    return 0.0


@dataclasses.dataclass(frozen=True)
class _Played:
    end: float
    on_main: list[int]
    """Entries on the longest chain that the main thread did."""
    beside: list[int]
    """Operations on the longest chain that vector threads or the DMA did."""


def _play(operations: Sequence[Operation]) -> _Played:
    """Play the run list. Events are numbered: i is what the main thread did at entry i, ~i the end of operation i that
    runs beside it; `before` maps an event to the one that it had to wait for."""
    main_ms, main = 0.0, None
    threads: list[tuple[float, int | None]] = [(0.0, None)] * VECTOR_THREADS
    dma: tuple[float, int | None] = (0.0, None)
    ends: dict[int, float] = {}
    before: dict[int, int | None] = {}
    for index, op in enumerate(operations):
        main_ms += _START_MS[op.engine]
        before[index], main = main, index
        if op.waits is not None:
            if ends.get(op.waits, 0.0) > main_ms:
                main_ms, before[index] = ends[op.waits], ~op.waits
        elif op.engine == "matrix":
            main_ms += _cost(op)
        elif op.engine in ("vector", "dma"):
            thread = min(range(VECTOR_THREADS), key=lambda n: threads[n][0]) if op.engine == "vector" else -1
            free, last = dma if thread < 0 else threads[thread]
            before[~index] = last if free > main_ms else index
            ends[index] = max(free, main_ms) + _cost(op)
            if thread < 0:
                dma = (ends[index], ~index)
            else:
                threads[thread] = (ends[index], ~index)
    end, event = max([(main_ms, main), dma, *threads], key=lambda found: found[0])
    chain: list[int] = []
    while event is not None:
        chain.append(event)
        event = before[event]
    return _Played(end, [event for event in chain if event >= 0], [~event for event in chain if event < 0])


def path_columns() -> tuple[str, ...]:
    """The names of the features on the longest chain, in the order of the fields."""
    return tuple(field.name for field in dataclasses.fields(Features) if field.name.startswith("path_"))
