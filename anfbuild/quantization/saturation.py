"""Ranges beyond which an operator's output no longer changes by a code: the codes of its input are not wasted there."""

from __future__ import annotations

import math

import onnx

from anfbuild.quantization.topology import Topology


def useful_range(root: str, topology: Topology, bits: int) -> tuple[float, float]:
    """The range outside which no reader of the tensors that share `root`'s encoding tells values apart.

    Infinite when any reader does, or one of the tensors is an output of the graph.
    """
    members = {name for name, other in topology.roots.items() if other == root}
    lo, hi = math.inf, -math.inf
    for member in members:
        readers = topology.consumers.get(member, [])
        if member in topology.graph_outputs or not readers:
            return -math.inf, math.inf
        for node in readers:
            if not members.intersection(node.output):
                low, high = _saturates(node, bits)
                lo, hi = min(lo, low), max(hi, high)
    return (lo, hi) if lo < hi else (-math.inf, math.inf)


def _saturates(node: onnx.NodeProto, bits: int) -> tuple[float, float]:
    """Where the output is within half a code of its end. Codes: 2^-bits for Sigmoid, 2^(1 - bits) for Tanh."""
    if node.op_type == "Sigmoid":
        limit = math.log(2 ** (bits + 1) - 1)
        return -limit, limit
    if node.op_type == "Tanh":
        limit = math.atanh(1 - 2.0**-bits)
        return -limit, limit
    if node.op_type == "HardSigmoid":  # max(0, min(1, alpha * x + beta))
        alpha, beta = (
            next((a.f for a in node.attribute if a.name == n), d) for n, d in (("alpha", 0.2), ("beta", 0.5))
        )
        if alpha > 0:
            return -beta / alpha, (1 - beta) / alpha
    return -math.inf, math.inf
