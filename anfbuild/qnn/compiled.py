"""What a compile decided, as plain values: no path, no time, no host, so that the same compile gives the same JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, cast

from anfbuild.errors import StepError
from anfbuild.qnn.operations import Operation
from anfbuild.qnn.schematic import Traffic

Unit = Literal["HTP", "CPU", "folded"]

MERGED = "optimised away, counted with "
"""How the reason of a node begins that has no op of its own left; the name of another follows."""
UNCLAIMED = "not claimed by the HTP, no reason given"
LOST = "neither the compiler nor onnxruntime says where this node went"


@dataclass(frozen=True)
class Verdict:
    """Where one node of the ONNX model went, and why.

    `unit` "folded" is a node that computes a constant: it is gone before anything is placed. `partition` numbers the
    HTP subgraph that the node is in, `qnn_op` is the type of the QNN op it became or is a part of; both are None off
    the HTP. `reason` says why the node is not on the HTP, or what took it up when it has no op of its own.
    """

    node: str
    op_type: str
    unit: Unit
    partition: int | None
    qnn_op: str | None
    reason: str

    @property
    def merged(self) -> bool:
        """Whether it has no op of its own left."""
        return self.reason.startswith(MERGED)

    @property
    def refused(self) -> bool:
        """Whether the compiler says why it does not take this very node."""
        return self.unit == "CPU" and not self.merged and self.reason not in (UNCLAIMED, LOST)


@dataclass(frozen=True)
class Compiled:
    """The result of `compile_context`.

    `vtcm_mb` is what the graph was given (MiB), `qnn_build` the compiler's full version. `files` maps the names of the
    context model and its binaries to their size in bytes. `traffic` (bytes of one inference) is None, with
    `traffic_reason`, where the compiler left no schematic. `activations` and `constants` count the compiled tensors by
    data type ("ufixed8", "sfixed32", "float32", …). `operations` is the run list; it is large, and not in the JSON.
    """

    soc_model: int
    soc: str
    arch: str
    vtcm_mb: int
    qnn_version: str
    qnn_build: str
    partitions: int
    files: dict[str, int]
    traffic: Traffic | None
    traffic_reason: str | None
    activations: dict[str, int]
    constants: dict[str, int]
    verdicts: tuple[Verdict, ...]
    operations: tuple[Operation, ...] | None = field(default=None, compare=False)

    @property
    def traffic_mb(self) -> dict[str, float] | None:
        """DRAM traffic of one inference in MB (10^6 bytes): dram_read_mb, dram_write_mb, spill_mb, fill_mb."""
        if self.traffic is None:
            return None
        names = {"dram_read_mb": "read", "dram_write_mb": "write", "spill_mb": "spill", "fill_mb": "fill"}
        return {name: getattr(self.traffic, field) / 1e6 for name, field in names.items()}

    @property
    def float_tensors(self) -> int:
        """How many activation tensors of the compiled graphs are floating point: 0 for a wholly quantized model."""
        return sum(count for kind, count in self.activations.items() if kind.startswith("float"))

    @property
    def integer(self) -> bool:
        """Whether what was compiled computes on integers: fixed-point activations, and no floating-point one."""
        return self.float_tensors == 0 and any("fixed" in kind for kind in self.activations)

    def to_json(self) -> dict[str, object]:
        """A JSON object that `from_json` reads back. Its key `traffic_mb` is for readers; it is not read."""
        values = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "operations"}
        return {
            **values,
            "traffic": None if self.traffic is None else asdict(self.traffic),
            "verdicts": [asdict(row) for row in self.verdicts],
            "traffic_mb": self.traffic_mb,
        }

    @classmethod
    def from_json(cls, document: dict[str, object]) -> Compiled:
        """Raises StepError for an object that `to_json` did not write."""
        values = {key: value for key, value in document.items() if key != "traffic_mb"}
        try:
            verdicts = tuple(Verdict(**row) for row in cast(list[dict[str, Any]], values.pop("verdicts")))
            moved = cast(dict[str, int] | None, values.pop("traffic"))
            traffic = None if moved is None else Traffic(**moved)
            return cls(**cast(dict[str, Any], values), verdicts=verdicts, traffic=traffic)
        except (KeyError, TypeError) as error:
            raise StepError(f"this is not the record of a compile: {error}") from error
