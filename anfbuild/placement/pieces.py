"""The nodes of the QDQ model, each with the compiler's verdict, its work and its neighbours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anfbuild.errors import StepError
from anfbuild.placement.rows import QDQ
from anfbuild.qnn.compiled import Verdict

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class Piece:
    """One node of the QDQ model. `macs`: multiply-accumulates of one inference.

    `before` and `after` are the nodes that make what it reads and that read what it makes, Q and DQ passed over; `end`
    says whether it is a Q or DQ at an input or output of the model.
    """

    verdict: Verdict
    macs: int
    before: tuple[str, ...]
    after: tuple[str, ...]
    end: bool

    @property
    def node(self) -> str:
        return self.verdict.node

    @property
    def op_type(self) -> str:
        return self.verdict.op_type

    @property
    def on_cpu(self) -> bool:
        return self.verdict.unit == "CPU"


def pieces(model: onnx.ModelProto, verdicts: Sequence[Verdict]) -> dict[str, Piece]:
    """Name -> piece, in the model's order. `verdicts` must be those on that very model: StepError otherwise."""
    from anfbuild.graph import node_macs

    told = {verdict.node: verdict for verdict in verdicts}
    missing = [node.name for node in model.graph.node if node.name not in told]
    if missing:
        raise StepError(f"the compile has no verdict on {len(missing)} nodes of the model", where=f"node {missing[0]}")
    macs = node_macs(model)
    before = _makers(model.graph)
    after: dict[str, list[str]] = defaultdict(list)
    for node in model.graph.node:
        for maker in before[node.name] if node.op_type not in QDQ else ():
            after[maker].append(node.name)
    ends = _ends(model.graph)
    return {
        node.name: Piece(
            told[node.name], macs.get(node.name, 0), before[node.name], tuple(after[node.name]), node.name in ends
        )
        for node in model.graph.node
    }


def _makers(graph: onnx.GraphProto) -> Mapping[str, tuple[str, ...]]:
    """Node -> the nodes that make what it reads. A Q or DQ hands on what it reads, so that it is no maker."""
    from anfbuild.graph.edit import used_names

    made_by: dict[str, tuple[str, ...]] = {}
    found = {}
    for node in graph.node:
        makers = tuple(dict.fromkeys(maker for name in used_names(node) for maker in made_by.get(name, ())))
        found[node.name] = makers
        made_by.update(dict.fromkeys(node.output, makers if node.op_type in QDQ else (node.name,)))
    return found


def _ends(graph: onnx.GraphProto) -> set[str]:
    inputs, outputs = ({value.name for value in side} for side in (graph.input, graph.output))
    return {
        node.name
        for node in graph.node
        if (node.op_type == "QuantizeLinear" and node.input[0] in inputs)
        or (node.op_type == "DequantizeLinear" and node.output[0] in outputs)
    }
