"""The placement table: one row a node, its unit, its work and the reason."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Literal

import onnx

from anfbuild.errors import StepError
from anfbuild.graph import node_macs
from anfbuild.qnn.compiled import Compiled

_QDQ = ("QuantizeLinear", "DequantizeLinear")
# A spreadsheet takes a cell that begins so for a formula. Source: OWASP, "CSV Injection".
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class Row:
    """One node. `macs`: multiply-accumulates of one inference. `unit` "folded": a constant, it runs nowhere.

    `reason` says why the node is off the HTP, or with what it counts when it was optimised away; it is empty for a
    plain HTP node.
    """

    node: str
    op_type: str
    unit: Literal["HTP", "GPU", "CPU", "folded"]
    macs: int
    reason: str

    @property
    def compute(self) -> bool:
        """Whether the node counts as work: not the Q/DQ at the graph's inputs and outputs, nor a folded constant."""
        return self.op_type not in _QDQ and self.unit != "folded"


COLUMNS = tuple(field.name for field in fields(Row))


def table(model: onnx.ModelProto, compiled: Compiled) -> list[Row]:
    """The rows of a QDQ model, in its order: compute nodes, and the Q/DQ at its inputs and outputs.

    `compiled` must be the compile of that very model: StepError otherwise.
    """
    verdicts = {verdict.node: verdict for verdict in compiled.verdicts}
    macs = node_macs(model)
    listed = [node for node in model.graph.node if _listed(node, model.graph)]
    missing = [node.name for node in listed if node.name not in verdicts]
    if missing:
        raise StepError(f"the compile has no verdict on {len(missing)} nodes of the model", where=f"node {missing[0]}")
    return [
        Row(node.name, node.op_type, verdicts[node.name].unit, macs.get(node.name, 0), verdicts[node.name].reason)
        for node in listed
    ]


def _listed(node: onnx.NodeProto, graph: onnx.GraphProto) -> bool:
    if node.op_type not in _QDQ:
        return True
    takes = node.op_type == "QuantizeLinear" and node.input[0] in {value.name for value in graph.input}
    gives = node.op_type == "DequantizeLinear" and node.output[0] in {value.name for value in graph.output}
    return takes or gives


def summary(rows: Sequence[Row], partitions: int) -> dict[str, object]:
    """{nodes, htp, gpu, cpu, partitions, share {macs {htp, gpu, cpu}}}: compute nodes and fractions of MACs by unit.

    `partitions` is `Compiled.partitions`; the fractions are None for a model without a multiplication.
    """
    compute = [row for row in rows if row.compute]
    total = sum(row.macs for row in compute)
    units = ("HTP", "GPU", "CPU")
    nodes = {unit.lower(): sum(row.unit == unit for row in compute) for unit in units}
    macs = {unit.lower(): sum(row.macs for row in compute if row.unit == unit) for unit in units}
    share = {unit: work / total if total else None for unit, work in macs.items()}
    return {"nodes": len(compute), **nodes, "partitions": partitions, "share": {"macs": share}}


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """Writes the rows under COLUMNS. A text that a spreadsheet would run as a formula gets a leading quote mark."""
    with path.open("w", encoding="utf-8", newline="") as file:
        # All texts are quoted: csv leaves a lone carriage return bare, and a reader would end the row there.
        writer = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(COLUMNS)
        writer.writerows([_cell(value) for value in astuple(row)] for row in rows)


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
