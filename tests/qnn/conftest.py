"""Small QDQ models, and one compile of the smallest whose every file is kept for the tests of the readers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anfbuild.qnn import Options, process, unavailable

SM8650 = Options(57, "v75", 8)
REASON = unavailable()

ModelMaker = Callable[..., bytes]


class _Builder:
    """Makes a QDQ chain node by node."""

    def __init__(self, activation: type[np.unsignedinteger], weight: type[np.integer]) -> None:
        self.activation, self.weight = activation, weight
        self.nodes: list[onnx.NodeProto] = []
        self.initializers: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(0)

    def constant(self, name: str, value: np.ndarray | np.generic) -> str:
        self.initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, op_type: str, inputs: list[str], name: str, **attributes: object) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def qdq(self, value: str, name: str, scale: float) -> str:
        levels = float(np.iinfo(self.activation).max) / 255
        parameters = [
            self.constant(f"{name}_scale", np.float32(scale / levels)),
            self.constant(f"{name}_zero", self.activation(0)),
        ]
        quantized = self.node("QuantizeLinear", [value, *parameters], f"{name}_Q")
        return self.node("DequantizeLinear", [quantized, *parameters], f"{name}_DQ")

    def conv(self, value: str, name: str, shape: tuple[int, ...]) -> str:
        info = np.iinfo(self.weight)
        parameters = [
            self.constant(f"{name}_w", self.random.integers(info.min, info.max, shape).astype(self.weight)),
            self.constant(f"{name}_w_scale", np.float32(2.0 / (int(info.max) - int(info.min)))),
            self.constant(f"{name}_w_zero", self.weight((int(info.max) + int(info.min) + 1) // 2)),
        ]
        weight = self.node("DequantizeLinear", parameters, f"{name}_w_DQ")
        return self.node("Conv", [value, weight], name, kernel_shape=list(shape[2:]), pads=[shape[2] // 2] * 4)

    def model(self, result: str, shape: list[int]) -> bytes:
        self.nodes[-1].output[0] = "y" if result == self.nodes[-1].output[0] else result
        graph = helper.make_graph(
            self.nodes,
            "tiny",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 16, 16])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
            self.initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        onnx.checker.check_model(model, full_check=True)
        return bytes(model.SerializeToString(deterministic=True))


@pytest.fixture(scope="session")
def make_model() -> ModelMaker:
    """Conv, Relu, MaxPool, Sigmoid on 3x16x16, quantized; with `erf` an op the HTP lacks, then a Conv, behind them."""

    def make(
        *, erf: bool = False, activation: type = np.uint8, weight: type = np.uint8, quantized: bool = True
    ) -> bytes:
        builder = _Builder(activation, weight)
        if not quantized:
            weights = builder.constant("w", builder.random.standard_normal((16, 3, 3, 3)).astype(np.float32))
            return builder.model(builder.node("Conv", ["x", weights], "conv", pads=[1] * 4), [1, 16, 16, 16])
        value = builder.conv(builder.qdq("x", "in", 1 / 255), "conv", (16, 3, 3, 3))
        value = builder.qdq(builder.node("Relu", [value], "relu"), "act", 0.02)
        value = builder.node("MaxPool", [value], "pool", kernel_shape=[2, 2], strides=[2, 2])
        value = builder.qdq(value, "pooled", 0.02)
        value = builder.qdq(builder.node("Sigmoid", [value], "sigmoid"), "prob", 1 / 256)
        if erf:
            value = builder.qdq(builder.node("Erf", [value], "erf"), "err", 1 / 256)
            value = builder.qdq(builder.conv(value, "conv2", (8, 16, 1, 1)), "out", 0.02)
        return builder.model(value, [1, 8 if erf else 16, 8, 8])

    return make


@pytest.fixture(scope="session")
def kept(make_model: ModelMaker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The private folder of one compile, kept: log.json, traces/, *schematic.bin, model.onnx and its binary."""
    if REASON is not None:
        pytest.skip(REASON)
    folder = tmp_path_factory.mktemp("kept")
    (folder / "source.onnx").write_bytes(make_model())
    request = {"provider_options": SM8650.provider_options()}
    response = process.run(folder, "compile", request, timeout_s=120, memory_gb=4)
    assert "error" not in response
    return folder
