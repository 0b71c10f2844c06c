"""What the compiler's run list says about the time of an inference: the features of the latency model.

They are sums over all operations, by the engine that does them, and the length of the longest chain of operations that
wait for one another. Playing the list on a machine of threads, and costing only what lies on the longest chain, was
tried, and told less: the costs fitted to it did not carry over to families of models that the fit had not seen.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from anfbuild.errors import StepError
from anfbuild.qnn.operations import Operation

_THREADS = 4
# Reference rates in work per ms, of about a Snapdragon 8 Gen 3: they only put operations in an order for a reader.
_MACS = {"8": 28e9, "16": 28e9 / 2.5, "float": 28e9 / 3.8}
_VECTOR_BYTES = {"vector": 72e6, "copy": 120e6, "heavy": 58e6}
_DRAM_BYTES = 60e6

_HEAVY = re.compile(
    "softmax|norm|reduce|lookup|div|gather|argmax|d2s|s2d|transpose|decimate|prelu|x2s|moments|sigmoid|exp|gelu|table|"
    "resize|bilinear|interp",
    re.I,
)
"""Vector operations that change the order of values, look them up or reduce them: slower a byte than the others."""
_COPY = re.compile("concat|slice|reshape|pad|zap|format|copy|flatten|crouton|tile|split|vtcm", re.I)
"""Vector operations that only copy."""
_SPILLS = ("@Spill", "@Fill")


@dataclasses.dataclass(frozen=True)
class Features:
    """One inference of a compiled graph. Bytes and multiply-accumulates (MACs) are counts; nothing depends on a clock.

    MACs named by a width are in whole blocks of the matrix engine. Bytes of vector operations are those of on-chip
    memory; what they read from DRAM itself is in `stream_bytes`.
    """

    macs_8: int = 0
    """Padded MACs of matrix operations with 8-bit results; so the next two."""
    macs_16: int = 0
    macs_float: int = 0
    vector_bytes: int = 0
    heavy_bytes: int = 0
    """Of vector operations that change the order of values, look them up or reduce them."""
    copy_bytes: int = 0
    """Of vector operations that only copy. Nothing that was measured is longer for them."""
    float_bytes: int = 0
    """Of all vector operations with floating-point results: on top of those above."""
    stream_bytes: int = 0
    """Between DRAM and the chip: weights, inputs, outputs; spills left out."""
    spill_bytes: int = 0
    """Written to DRAM and read back because on-chip memory was full."""
    depth: int = 0
    """Entries of the run list on the longest chain that wait for one another."""
    entries: int = 0
    """Of the run list, those that only wait included."""
    macs: int = 0
    """As the operators define them, without what pads the engine's blocks."""
    dram_read: int = 0
    dram_write: int = 0
    unlisted: dict[str, int] = dataclasses.field(default_factory=dict)
    """Operations that are not understood, and so not in the sums, by name and reason, with how many there are."""

    def to_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Features:
        """Raises StepError for an object that `to_json` did not write."""
        if set(document) != {field.name for field in dataclasses.fields(cls)}:
            raise StepError("this is not a record of compiled features")
        return cls(**document)


def summarise(operations: Sequence[Operation]) -> Features:
    """The features of a run list (see `operations.read`)."""
    total: Counter[str] = Counter()
    unlisted: Counter[str] = Counter()
    for op in operations:
        total.update(_work(op))
        if op.doubt is not None:
            unlisted[f"{op.name} ({op.doubt})"] += 1
    depth = max((op.level for op in operations), default=0)
    return Features(**total, depth=depth, entries=len(operations), unlisted=dict(sorted(unlisted.items())))


def _work(op: Operation) -> dict[str, int]:
    if op.waits is not None or op.engine == "main":
        return {}
    work = {"macs": op.macs, "dram_read": op.dram_read, "dram_write": op.dram_write}
    work["spill_bytes" if op.name in _SPILLS else "stream_bytes"] = op.dram_read + op.dram_write
    if op.engine == "matrix":
        work[f"macs_{op.width}"] = op.padded
    if op.engine == "vector":
        work[f"{_kind(op.name)}_bytes"] = op.vtcm
        work["float_bytes"] = op.vtcm if op.width == "float" else 0
    return work


def work_by_name(operations: Sequence[Operation]) -> list[tuple[str, int, float]]:
    """(kind of operation, how many, ms on the reference machine, nothing overlapped), the dearest first."""
    count: Counter[str] = Counter()
    ms: defaultdict[str, float] = defaultdict(float)
    for op in operations:
        if op.waits is None and op.engine != "main":
            count[op.name] += 1
            ms[op.name] += _reference_ms(op)
    return [(name, count[name], ms[name]) for name in sorted(ms, key=lambda name: (-ms[name], name))]


def _kind(name: str) -> str:
    return "heavy" if _HEAVY.search(name) else "copy" if _COPY.search(name) else "vector"


def _reference_ms(op: Operation) -> float:
    dram = (op.dram_read + op.dram_write) / _DRAM_BYTES
    if op.engine == "matrix":
        return op.padded / _MACS[op.width] + dram
    if op.engine == "vector":
        return op.vtcm / _VECTOR_BYTES[_kind(op.name)] / _THREADS + dram
    return dram
