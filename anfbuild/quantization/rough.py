"""Encodings without calibration, for a model that is only to be costed: the compiler's work does not hang on them."""

from __future__ import annotations

import hashlib

import onnx

from anfbuild.quantization import schemes
from anfbuild.quantization.encodings import Encoding, fixed_range, from_range
from anfbuild.quantization.parameters import data_encoding
from anfbuild.quantization.qdq import write
from anfbuild.quantization.schemes import Scheme
from anfbuild.quantization.topology import Topology, analyse

_NOT_NEGATIVE = {"Relu", "Clip", "Softmax", "Sigmoid", "HardSigmoid", "Abs", "Sqrt", "Exp"}
_LEAST = 3.0
"""Ranges reach from here to twice that, each tensor's its own, so that no two encodings agree by chance; those that a
Concat joins agree."""


def quantize_roughly(model: onnx.ModelProto, scheme: str) -> onnx.ModelProto:
    """The QDQ model of a clean float `model` with made-up ranges. Raises as `quantize` does.

    What it computes is worthless; its operators, shapes and types are those of a calibrated one.
    """
    found = schemes.find(scheme)
    topology = analyse(model)
    groups = _joined(model, topology)
    encodings = {
        root: _encoding(root, groups.get(root, root), topology, found) for root in set(topology.roots.values())
    }
    encodings |= {name: encodings[root] for name, root in topology.roots.items()}
    return write(model, topology, encodings, found)[0]


def _joined(model: onnx.ModelProto, topology: Topology) -> dict[str, str]:
    """Root -> the one that stands for all that Concats join with it."""
    above: dict[str, str] = {}

    def top(name: str) -> str:
        while name in above:
            name = above[name]
        return name

    for node in model.graph.node:
        if node.op_type == "Concat":
            roots = [topology.roots[name] for name in (*node.input, *node.output) if name in topology.roots]
            for root in roots[:-1]:
                if top(root) != top(roots[-1]):
                    above[top(root)] = top(roots[-1])
    return {root: top(root) for root in set(topology.roots.values())}


def _encoding(root: str, group: str, topology: Topology, scheme: Scheme) -> Encoding:
    if root in topology.constants:
        return data_encoding(topology.constants[root], scheme)
    fixed = topology.fixed_range(root)
    if fixed is not None:
        return fixed_range(*fixed, scheme.activation_bits)
    high = _LEAST * 2 ** (hashlib.sha256(group.encode()).digest()[0] / 255)
    maker = topology.producers.get(root)
    positive = group == root and maker is not None and maker.op_type in _NOT_NEGATIVE
    return from_range(0.0 if positive else -high, high, scheme.activation_bits)
