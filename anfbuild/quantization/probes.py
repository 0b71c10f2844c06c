"""Adds to a model the small outputs that the statistics are made of, so that no whole activation leaves the runtime.

Each observed tensor gets a probe: a vector of row-wise minima, row-wise maxima and a strided sample. A tensor made
from another by a monotone operator and scalar constants (Add 3, Clip, Div 6 of a hard swish, Relu) is never read:
the operator, applied to the other's probe, gives its very extremes and sample.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from anfbuild.quantization.topology import Topology

SAMPLE = 2048
"""The most values of a tensor that its histogram gets from one sample; smaller tensors are taken whole."""

_MAX_ROWS = 256
"""Extremes are taken of so many rows: parallel work for the runtime, and tails that a strided sample would miss."""

_FINITE = {
    *("Conv", "ConvTranspose", "Gemm", "MatMul", "Add", "Sub", "Mul", "Neg", "Abs", "Max", "Min", "Where", "Concat"),
    *("Relu", "Clip", "LeakyRelu", "PRelu", "Elu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh", "Softmax", "Erf"),
    *("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "ReduceMax", "ReduceMin", "Resize"),
}
"""Operators that make no NaN of finite values; where they overflow, the extremes show Inf."""

_MONOTONE = {"Add", "Sub", "Mul", "Div", "Relu", "Clip", "LeakyRelu", "Neg"}


@dataclass(frozen=True)
class Probe:
    """How to read the probe of one tensor."""

    output: str
    rows: int
    """The probe holds this many minima of rows, as many maxima, and then the sample; 0: the whole tensor alone."""
    stride: int
    """Each value of the sample stands for so many of the tensor."""
    falling: bool = False
    """Maxima and minima have changed places, by a falling function."""


@dataclass(frozen=True)
class Probed:
    """The model with probes."""

    model: onnx.ModelProto
    probes: dict[str, Probe]
    """Observed tensor -> its probe."""
    sums: list[str]
    """Outputs that are finite unless a tensor holds NaN or Inf (or its sum overflows).

    The runtime's minima and maxima lose NaN, so every input and every result of an operator that may make NaN of
    finite values is summed; from there on a NaN cannot appear.
    """


def with_probes(model: onnx.ModelProto, topology: Topology) -> Probed:
    """A copy of `model` whose outputs are its own and the probes of `topology.observed`."""
    builder = _Builder(model, topology)
    wanted = set(topology.observed)
    for name in topology.activations:
        node = topology.producers.get(name)
        source = _monotone_source(node, topology) if node is not None else None
        if node is not None and source in builder.probes:
            builder.derive(name, node, source)
        elif name in wanted:
            builder.observe(name, topology.activations[name], may_be_nan=node is None or node.op_type not in _FINITE)
    return builder.build(wanted)


class _Builder:
    def __init__(self, model: onnx.ModelProto, topology: Topology) -> None:
        self._model = onnx.ModelProto()
        self._model.CopyFrom(model)
        self._topology = topology
        self._opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
        self._groups: dict[str, list[onnx.NodeProto]] = {}
        self._group: dict[str, str] = {}  # tensor -> the observed tensor whose probe its own is made from
        self._constants: dict[tuple[int | str, ...], str] = {}
        # A prefix that no name of the model begins with makes all new names unique.
        names = {*topology.producers, *topology.constants, *topology.activations}
        self._prefix = "probe"
        while any(name.startswith(self._prefix) for name in names):
            self._prefix += "_"
        self.probes: dict[str, Probe] = {}
        self._sums: list[str] = []

    def observe(self, name: str, shape: tuple[int, ...], *, may_be_nan: bool) -> None:
        size = math.prod(shape)
        if size <= SAMPLE:  # NaN is seen in it
            self._groups[name] = [helper.make_node("Reshape", [name, self._ints(-1)], [f"{self._prefix}/{name}/probe"])]
            self._group[name] = name
            self.probes[name] = Probe(f"{self._prefix}/{name}/probe", rows=0, stride=1)
            return
        rows = next(rows for rows in range(min(size, _MAX_ROWS), 0, -1) if size % rows == 0)
        stride = sample_stride(size, shape)
        taken = size if stride == 1 else min(SAMPLE, -(-size // stride))
        prefix = f"{self._prefix}/{name}"
        flat, table, low, high, total, some = (f"{prefix}/{part}" for part in ("v", "m", "min", "max", "sum", "some"))
        nodes = [
            helper.make_node("Reshape", [name, self._ints(rows, -1)], [table]),
            self._reduce("ReduceMin", table, low, axes_are_input=self._opset >= 18),
            self._reduce("ReduceMax", table, high, axes_are_input=self._opset >= 18),
            helper.make_node("Reshape", [name, self._ints(-1)], [flat]),
            helper.make_node("Slice", [flat, *(self._ints(value) for value in (0, taken * stride, 0, stride))], [some]),
            helper.make_node("Concat", [low, high, some], [f"{prefix}/probe"], axis=0),
        ]
        if may_be_nan:
            nodes.append(self._reduce("ReduceSum", table, total, axes_are_input=True))
            self._sums.append(total)
        self._groups[name] = nodes
        self._group[name] = name
        self.probes[name] = Probe(f"{prefix}/probe", rows, stride)

    def derive(self, name: str, node: onnx.NodeProto, source: str) -> None:
        old = self.probes[source]
        falling = old.falling != _falls(node, source, self._topology)
        probe = Probe(f"{self._prefix}/{name}/probe", old.rows, old.stride, falling)
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        copy.name = ""
        copy.output[0] = probe.output
        for index, value in enumerate(node.input):
            if value == source:
                copy.input[index] = old.output
            elif value and index < 2 and node.op_type != "Clip":
                copy.input[index] = self._scalar(value)
        self._group[name] = self._group[source]
        self._groups[self._group[name]].append(copy)
        self.probes[name] = probe

    def build(self, wanted: set[str]) -> Probed:
        # The runtime walks the graph depth first from its last leaf: with the probes of the first tensors last, each
        # is taken as soon as its tensor exists, and the tensor's memory is free again for the next ones.
        for nodes in reversed(self._groups.values()):
            self._model.graph.node.extend(nodes)
        probes = {name: probe for name, probe in self.probes.items() if name in wanted}
        for output in (*(probe.output for probe in probes.values()), *self._sums):
            self._model.graph.output.append(helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, None))
        return Probed(self._model, probes, self._sums)

    def _reduce(self, op_type: str, table: str, output: str, *, axes_are_input: bool) -> onnx.NodeProto:
        if axes_are_input:
            return helper.make_node(op_type, [table, self._ints(1)], [output], keepdims=0)
        return helper.make_node(op_type, [table], [output], axes=[1], keepdims=0)

    def _ints(self, *values: int) -> str:
        return self._initializer(values, np.array(values, np.int64))

    def _scalar(self, name: str) -> str:
        """The scalar constant `name` (of any rank) in the rank of a probe."""
        tensor = next(t for t in self._model.graph.initializer if t.name == name)
        return self._initializer((name,), numpy_helper.to_array(tensor).reshape(1))

    def _initializer(self, key: tuple[int | str, ...], values: np.ndarray) -> str:
        if key not in self._constants:
            self._constants[key] = f"{self._prefix}/constant/{len(self._constants)}"
            self._model.graph.initializer.append(numpy_helper.from_array(values, self._constants[key]))
        return self._constants[key]


def sample_stride(size: int, shape: tuple[int, ...]) -> int:
    """The least stride that takes at most SAMPLE of `size` values and shares no factor with any dimension.

    A stride that shared one with a row or a plane would see the same columns or channels again and again.
    """
    stride = max(1, -(-size // SAMPLE))
    if stride > 1:
        while any(math.gcd(stride, dim) > 1 for dim in shape if dim > 1):
            stride += 1
    return stride


def _monotone_source(node: onnx.NodeProto, topology: Topology) -> str | None:
    """The one activation that `node` maps value by value and monotonically, all its other inputs being scalars."""
    if node.op_type not in _MONOTONE:
        return None
    moving = [name for name in node.input if name in topology.activations]
    fixed = [topology.constants[name] for name in node.input if name in topology.constants]
    if len(moving) != 1 or len(moving) + len(fixed) != sum(1 for name in node.input if name):
        return None
    if any(value.size != 1 or not np.isfinite(value).all() for value in fixed):
        return None
    if node.op_type == "Div" and (node.input[0] != moving[0] or not fixed[0].all()):
        return None  # 1 / x is not monotone over zero
    if node.op_type == "LeakyRelu" and any(a.f < 0 for a in node.attribute if a.name == "alpha"):
        return None
    source: str = moving[0]
    return source


def _falls(node: onnx.NodeProto, source: str, topology: Topology) -> bool:
    """Whether the monotone `node` maps greater values of `source` to smaller ones."""
    if node.op_type in ("Mul", "Div"):
        return any((topology.constants[name] < 0).any() for name in node.input if name != source)
    return node.op_type == "Neg" or (node.op_type == "Sub" and node.input[1] == source)
