"""Joins the three things that the compiler tells about nodes into one verdict for each node of the ONNX model.

The provider assignment says which unit a node is on, but under the names that graph optimisation and layout
transformation gave: `NAME_token_N` (rewritten), `NAME/duplicated`, `NAME/MatMulAddFusion`, and new Transpose and Q/DQ
nodes. Nodes that were folded or merged are missing from it. The op trace says which QNN op a node became; the log says
why one was refused, with QNN's own words.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx

from anfbuild.errors import StepError
from anfbuild.qnn.compiled import LOST, MERGED, UNCLAIMED, Verdict
from anfbuild.qnn.logs import BuildLog
from anfbuild.qnn.options import PROVIDER
from anfbuild.qnn.trace import Trace

_QDQ = {"QuantizeLinear", "DequantizeLinear"}
_TOKEN = re.compile(r"(_token_\d+)+$")


@dataclass(frozen=True)
class Group:
    """Nodes that a provider runs as one: (name, op type) each."""

    provider: str
    nodes: tuple[tuple[str, str], ...]


def read_assignment(assignment: object) -> list[Group]:
    """The groups of a worker's response; StepError for any other form."""
    said = StepError("the provider assignment is not a list of {provider, nodes}")
    if not isinstance(assignment, list):
        raise said
    try:
        return [
            Group(str(row["provider"]), tuple((str(name), str(op_type)) for name, op_type in row["nodes"]))
            for row in assignment
        ]
    except (TypeError, KeyError, ValueError) as error:
        raise said from error


def strip(name: str) -> str:
    """The name that a node had before layout transformation rewrote it."""
    return _TOKEN.sub("", name)


def partitions(groups: Iterable[Group]) -> int:
    """In how many subgraphs the HTP runs the model."""
    return sum(group.provider == PROVIDER for group in groups)


def join(
    model: onnx.ModelProto, groups: Sequence[Group], trace: Trace, log: BuildLog, host_outputs: Sequence[str]
) -> tuple[Verdict, ...]:
    """One verdict for each node of the model's main graph, in its order.

    `host_outputs` are the graph outputs that are made outside the HTP: layout transformation moves their
    DequantizeLinear and gives it a new name, so the assignment alone would miss it.
    """
    names = {node.name for node in model.graph.node}
    seen = _seen(names, groups)
    constant = _constant_nodes(model.graph)
    placed = {node.name: _verdict(node, seen[node.name], trace, log) for node in model.graph.node if node.name in seen}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.output[0] in host_outputs:
            reason = "a graph output is dequantized outside the HTP"
            placed[node.name] = Verdict(node.name, node.op_type, "CPU", None, None, reason)
        elif node.name not in placed and node.name in constant:
            placed[node.name] = Verdict(node.name, node.op_type, "folded", None, None, "computes a constant")
    _place_merged(model.graph, placed, _put_on_cpu(names, groups))
    return tuple(placed[node.name] for node in model.graph.node)


@dataclass(frozen=True)
class _Seen:
    """One appearance of a model's node in the assignment, under its name there."""

    name: str
    partition: int | None  # None: on the CPU


def _seen(names: set[str], groups: Iterable[Group]) -> dict[str, list[_Seen]]:
    found: dict[str, list[_Seen]] = defaultdict(list)
    partition = 0
    for group in groups:
        on_htp = group.provider == PROVIDER
        for name, _ in group.nodes:
            origin = _origin(name, names)
            if origin is not None:
                found[origin].append(_Seen(name, partition if on_htp else None))
        partition += on_htp
    return found


def _put_on_cpu(names: set[str], groups: Iterable[Group]) -> set[str]:
    """The op types of the nodes on the CPU that no node of the model was made into, as far as names tell. Q and DQ are
    edges, of which new ones stand beside every node of the CPU."""
    on_cpu = [node for group in groups if group.provider != PROVIDER for node in group.nodes]
    return {op_type for name, op_type in on_cpu if _origin(name, names) is None} - _QDQ


def _origin(name: str, names: set[str]) -> str | None:
    """The model's node that a node of the optimised graph was made from; None for one that was put in."""
    if name in names:
        return name
    name = strip(name)
    while name not in names:
        name, slash, _ = name.rpartition("/")
        if not slash:
            return None
    return name


def _verdict(node: onnx.NodeProto, seen: Sequence[_Seen], trace: Trace, log: BuildLog) -> Verdict:
    """An appearance under the node's own name decides; among rewritten ones the CPU does, as the worse case."""
    own = [one for one in seen if one.name == node.name] or list(seen)
    off = next((one for one in own if one.partition is None), None)
    if off is not None:
        validation = log.validations.get(off.name)
        reason = (validation.reason if validation else "") or trace.unsupported.get(off.name, "")
        return Verdict(node.name, node.op_type, "CPU", None, None, reason or UNCLAIMED)
    qnn_op = next((trace.ops[one.name] for one in own if one.name in trace.ops), None)
    return Verdict(node.name, node.op_type, "HTP", own[0].partition, qnn_op, "")


def _constant_nodes(graph: onnx.GraphProto) -> set[str]:
    """Names of the nodes whose inputs are all constants. The graph is in topological order, as ONNX demands."""
    constant = {tensor.name for tensor in graph.initializer} - {value.name for value in graph.input} | {""}
    nodes = set()
    for node in graph.node:
        if constant.issuperset(node.input):
            constant.update(node.output)
            nodes.add(node.name)
    return nodes


def _place_merged(graph: onnx.GraphProto, placed: dict[str, Verdict], put_on_cpu: set[str]) -> None:
    """A node that is in no group has no op of its own left: it counts where the node runs that reads or feeds it.

    Between the HTP and the CPU that is the HTP, unless there is a new node of its type (`put_on_cpu`) on the CPU:
    layout transformation took it up in the order in which the HTP hands its values over, and the CPU runs nothing for
    it. A Transpose may also have been moved past nodes of the CPU.
    """
    readers: Mapping[str, list[str]] = defaultdict(list)
    makers: dict[str, str] = {}
    for node in graph.node:
        for name in node.input:
            readers[name].append(node.name)
        makers.update(dict.fromkeys(node.output, node.name))
    for units in (("HTP",), ("HTP", "CPU")):
        for node in reversed(graph.node):
            if node.name not in placed and ("CPU" in units or node.op_type not in put_on_cpu):
                _take_over(node, (reader for name in node.output for reader in readers[name]), placed, units)
        for node in graph.node:
            if node.name not in placed and ("CPU" in units or node.op_type not in put_on_cpu):
                _take_over(node, (makers[name] for name in node.input if name in makers), placed, units)
    on_htp = any(verdict.unit == "HTP" for verdict in placed.values())
    for node in graph.node:
        if node.name not in placed:
            placed[node.name] = Verdict(node.name, node.op_type, "CPU", None, None, LOST)
        if placed[node.name].merged and node.op_type == "Transpose" and on_htp and "Transpose" not in put_on_cpu:
            placed[node.name] = replace(placed[node.name], unit="HTP")


def _take_over(node: onnx.NodeProto, others: Iterable[str], placed: dict[str, Verdict], units: Collection[str]) -> None:
    near = next((placed[name] for name in others if name in placed and placed[name].unit in units), None)
    if near is not None:
        placed[node.name] = replace(near, node=node.name, op_type=node.op_type, reason=f"{MERGED}{near.node}")
