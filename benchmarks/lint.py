"""How long `anfbuild lint` takes, start-up included: `python benchmarks/lint.py [--repeat 5]`.

CPU seconds of the process, the least of the repeats: a graph of the size of MobileNetV2 with its weights, the same
without, and one of 20,000 nodes. On a machine that does something else too they are more, by half and over.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from project import table

_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, blocks and stride of each stage (Sandler and others, MobileNetV2, table 2)."""
LIMITS = {"MobileNetV2": 1.0, "MobileNetV2, no weights": 1.0, "20,000 nodes": 10.0}
"""CPU seconds that the house promises."""


class Network:
    """Builds a graph node by node."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[TensorProto] = []
        self._random = np.random.default_rng(0)

    def constant(self, *shape: int) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(self._random.standard_normal(shape, np.float32), name))
        return name

    def op(self, op_type: str, *inputs: str, **attributes: object) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        return name

    def conv(
        self, x: str, inputs: int, outputs: int, kernel: int, stride: int, group: int = 1, act: bool = True
    ) -> str:
        pads = [kernel // 2] * 4
        weights = self.constant(outputs, inputs // group, kernel, kernel)
        x = self.op("Conv", x, weights, strides=[stride] * 2, pads=pads, group=group)
        x = self.op("BatchNormalization", x, *(self.constant(outputs) for _ in range(4)))
        return self.op("Relu", x) if act else x

    def model(self, result: str, shape: list[int]) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info(result, TensorProto.FLOAT, None)],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mobilenet() -> onnx.ModelProto:
    net = Network()
    x, channels = net.conv("x", 3, 32, 3, 2), 32
    for expansion, outputs, blocks, first in _STAGES:
        for block in range(blocks):
            stride, wide, start = first if block == 0 else 1, channels * expansion, x
            x = net.conv(x, channels, wide, 1, 1) if expansion > 1 else x
            x = net.conv(x, wide, wide, 3, stride, group=wide)
            x = net.conv(x, wide, outputs, 1, 1, act=False)
            x = net.op("Add", start, x) if stride == 1 and channels == outputs else x
            channels = outputs
    x = net.op("Flatten", net.op("GlobalAveragePool", net.conv(x, channels, 1280, 1, 1)))
    return net.model(net.op("Gemm", x, net.constant(1280, 1000), net.constant(1000)), [1, 3, 224, 224])


def chain(count: int) -> onnx.ModelProto:
    net = Network()
    x = "x"
    kinds = ("Relu", "Sigmoid", "Erf", "Conv")
    for number in range(count):
        kind = kinds[number % len(kinds)]
        x = net.op(kind, x, net.constant(8, 8, 1, 1)) if kind == "Conv" else net.op(kind, x)
    return net.model(x, [1, 8, 32, 32])


def cpu_seconds(path: Path) -> float:
    """Of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "anfbuild", "lint", str(path), "--json"], capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        raise SystemExit(done.stderr.decode())
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    bare = mobilenet()
    for tensor in bare.graph.initializer:
        tensor.ClearField("raw_data")
    models = dict(zip(LIMITS, (mobilenet(), bare, chain(20_000)), strict=True))
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for name, model in models.items():
            onnx.save(model, path)
            seconds = min(cpu_seconds(path) for _ in range(arguments.repeat))
            rows.append([name, str(len(model.graph.node)), f"{seconds:.2f}", f"{LIMITS[name]:.0f}"])
    print(table(["graph", "nodes", "CPU s", "limit"], rows))


if __name__ == "__main__":
    main()
