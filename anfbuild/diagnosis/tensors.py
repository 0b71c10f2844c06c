"""Which tensors of one model are those of another, how they are exposed, and which nodes lie between them."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping

import onnx

from anfbuild.graph.edit import used_names


def made(model: onnx.ModelProto) -> set[str]:
    """Every tensor that a node of the main graph makes."""
    return {name for node in model.graph.node for name in node.output if name}


@dataclasses.dataclass(frozen=True)
class Views:
    """How a model calls tensors that it shares with another one."""

    exposed: Mapping[str, str]
    """Shared name -> the tensor to look at."""
    entry: Mapping[str, str]
    """Shared name -> the tensor to put a value into."""


def plain_views(model: onnx.ModelProto) -> Views:
    """Of a float model: each tensor under its own name."""
    names = {name: name for name in made(model)}
    return Views(names, names)


def quantized_views(model: onnx.ModelProto) -> Views:
    """Of a QDQ model: a float tensor is looked at behind its DequantizeLinear and entered before its QuantizeLinear.

    Both names are keys: the float model has the first of them inside of the graph and the second at its outputs. The
    float tensor itself cannot be looked at: it would become an output of the graph then, computed in float.
    """
    quantizers = {node.output[0]: node.input[0] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    exposed: dict[str, str] = {}
    entry: dict[str, str] = {}
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear" and node.input[0] in quantizers:
            for name in (quantizers[node.input[0]], node.output[0]):
                exposed.setdefault(name, node.output[0])
                entry.setdefault(name, quantizers[node.input[0]])
    return Views(exposed, entry)


@dataclasses.dataclass(frozen=True)
class Region:
    """What computes one shared tensor from others."""

    nodes: tuple[onnx.NodeProto, ...]
    """The one that makes it first."""
    parents: tuple[str, ...]
    """The nearest shared tensors that it is computed from."""


def regions(model: onnx.ModelProto, shared: Collection[str]) -> dict[str, Region]:
    """Of each tensor of `shared` that a node of `model` makes, in topological order, what computes it."""
    makers = {name: node for node in model.graph.node for name in node.output if name}
    return {
        name: _region(name, makers, shared)
        for node in model.graph.node
        for name in node.output
        if name and name in shared
    }


def _region(tensor: str, makers: Mapping[str, onnx.NodeProto], shared: Collection[str]) -> Region:
    nodes: dict[str, onnx.NodeProto] = {}
    parents: dict[str, None] = {}
    pending = [tensor]
    while pending:
        node = makers[pending.pop(0)]
        if node.output[0] in nodes:
            continue
        nodes[node.output[0]] = node
        for name in used_names(node):
            if name in shared:
                parents[name] = None
            elif name in makers:
                pending.append(name)
    return Region(tuple(nodes.values()), tuple(name for name in parents if name in makers))
