"""Old, odd and quantized ONNX models: what is read and cleaned computes what onnxruntime makes of the file itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_models import Builder
from onnx import TensorProto, helper, numpy_helper

from anfbuild import graph
from anfbuild.sources.readers import read

Make = Callable[[Builder, str], str]
SHAPE = [1, 4, 6, 6]

OLD: dict[str, Make] = {
    "pool": lambda b, x: b.node("MaxPool", [b.node("AveragePool", [x], kernel_shape=[2, 2])], kernel_shape=[2, 2]),
    "same": lambda b, x: b.node("Conv", [x, b.weights(4, 4, 3, 3)], auto_pad="SAME_UPPER", strides=[2, 2]),
    "batchnorm": lambda b, x: b.batchnorm(b.node("Conv", [x, b.weights(4, 4, 1, 1)]), 4),
    "dropout": lambda b, x: b.node("Dropout", [x], ratio=0.5),
    "softmax": lambda b, x: b.node("Softmax", [x], axis=1),
    "pad": lambda b, x: b.node("Pad", [x], pads=[0, 0, 1, 0, 0, 0, 0, 2], mode="constant", value=1.5),
    "slice": lambda b, x: b.node("Slice", [x], axes=[2, 3], starts=[1, -3], ends=[4, 100]),
    "squeeze": lambda b, x: b.node("Unsqueeze", [b.node("Squeeze", [x], axes=[0])], axes=[0]),
    "reduce": lambda b, x: b.node("ReduceSum", [b.node("ReduceMean", [x], axes=[3])], axes=[2], keepdims=0),
    "reshape": lambda b, x: b.node("Reshape", [x, b.constant(np.array([1, -1, 6], np.int64))]),
    "clip": lambda b, x: b.node("Clip", [x], min=-0.5, max=0.5),
    "gemm": lambda b, x: b.node("Gemm", [b.node("Flatten", [x]), b.weights(144, 5), b.weights(5)]),
    "split": lambda b, x: b.node("Split", [x], axis=1, split=[4]),
    "prelu": lambda b, x: b.node("PRelu", [x, b.weights(4, 1, 1)]),
    "broadcast": lambda b, x: b.node("Add", [x, b.node("Mul", [x, b.weights(4, 1, 1)])]),
    "lrn": lambda b, x: b.node("LRN", [x], size=3),
    "transposed": lambda b, x: b.node("ConvTranspose", [x, b.weights(4, 2, 2, 2)], strides=[2, 2]),
    "instance": lambda b, x: b.node("InstanceNormalization", [x, b.weights(4), b.weights(4)]),
    "upsample": lambda b, x: b.node("Upsample", [x], mode="nearest", scales=[1.0, 1.0, 2.0, 2.0]),
    "linear": lambda b, x: b.node("Upsample", [x], mode="linear", scales=[1.0, 1.0, 2.0, 2.0]),
    "topk": lambda b, x: b.node("TopK", [x], k=3),
    "cast": lambda b, x: b.node("Cast", [b.node("Cast", [x], to=TensorProto.INT32)], to=TensorProto.FLOAT),
    "gather": lambda b, x: b.node("Gather", [x, b.constant(np.array([2, 0]))], axis=1),
    "constant": lambda b, x: b.node("Mul", [x, b.node("Constant", [], value=numpy_helper.from_array(np.float32(3)))]),
    "shape": lambda b, x: b.node("Reshape", [x, b.node("Shape", [x])]),
}
"""Operators as opset 7 has them."""


def compare(model: onnx.ModelProto, path: Path, *feeds: np.ndarray) -> onnx.ModelProto:
    """Read and clean a copy of `model` from `path`, and hold it against the model itself."""
    path.write_bytes(graph.serialize(model))
    expected = graph.Session(model, threads=1)
    named = dict(zip(expected.inputs, feeds, strict=True))
    clean, _, _ = graph.clean(read(path), {name: value.shape for name, value in named.items()})
    found = graph.Session(clean, threads=1).run(named)
    for name, value in expected.run(named).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
    return clean


@pytest.mark.parametrize("kind", OLD)
def test_a_model_of_opset_7_and_ir_3_computes_the_same(tmp_path: Path, kind: str) -> None:
    b = Builder()
    OLD[kind](b, "x")
    b.nodes[-1].output[0] = "y"
    if kind == "topk":
        b.nodes[-1].output.append("indices")
    model = b.model({"x": ["N", *SHAPE[1:]]}, {"y": None}, opset=7, ir=3)
    for tensor in b.initializers:
        model.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    model = onnx.shape_inference.infer_shapes(model)
    made = model.graph.output[0].type.tensor_type
    if not made.HasField("shape"):  # which depends on numbers
        made.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in SHAPE)
    model.metadata_props.add(key="labels", value="cat,dog")
    value = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    clean = compare(model, tmp_path / "m.onnx", value)
    assert clean.opset_import[0].version >= 17
    assert [(entry.key, entry.value) for entry in clean.metadata_props] == [("labels", "cat,dog")]
    assert [entry.name for entry in clean.graph.input] == ["x"]


def test_several_inputs_of_several_types(tmp_path: Path) -> None:
    b = Builder()
    words = b.node("Gather", [b.weights(10, 4), "ids"])
    mask = b.node("Unsqueeze", [b.node("Cast", ["mask"], to=TensorProto.FLOAT), b.constant(np.array([2]))])
    b.node("Add", [b.node("Mul", [words, mask]), "bias"], "y")
    model = b.model({"bias": [4]}, {"y": ["N", "L", 4]})
    for name, kind in (("ids", TensorProto.INT64), ("mask", TensorProto.INT32)):
        model.graph.input.append(helper.make_tensor_value_info(name, kind, ["N", "L"]))
    feeds = (np.ones(4, np.float32), np.array([[1, 9, 0]]), np.array([[1, 1, 0]], np.int32))
    clean = compare(model, tmp_path / "m.onnx", *feeds)
    assert graph.interface(clean)["inputs"] == {
        "bias": {"shape": [4], "dtype": "float32"},
        "ids": {"shape": [1, 3], "dtype": "int64"},
        "mask": {"shape": [1, 3], "dtype": "int32"},
    }


def qdq(domain: str) -> onnx.ModelProto:
    """A Conv with weights of a scale a channel, a Relu and a Reshape, each between Q and DQ."""
    b = Builder()
    zero = np.uint16(32768) if domain else np.uint8(128)
    scale, zero_point = b.constant(np.float32(0.05)), b.constant(zero)

    def rounded(name: str) -> str:
        stored = b.node("QuantizeLinear", [name, scale, zero_point], domain=domain)
        return b.node("DequantizeLinear", [stored, scale, zero_point], domain=domain)

    weights = b.constant(np.random.default_rng(0).integers(-127, 127, (5, 4, 3, 3)).astype(np.int8), "stored")
    scales = b.constant(np.linspace(0.001, 0.005, 5, dtype=np.float32), "scales")
    real = b.node("DequantizeLinear", [weights, scales, b.constant(np.zeros(5, np.int8))], axis=0)
    hidden = rounded(b.node("Conv", [rounded("x"), real], pads=[1, 1, 1, 1]))
    hidden = rounded(b.node("Relu", [hidden]))
    flat = b.node("Reshape", [hidden, b.constant(np.array([1, -1]))])
    stored = b.node("QuantizeLinear", [flat, scale, zero_point], domain=domain)
    b.node("DequantizeLinear", [stored, scale, zero_point], "y", domain=domain)
    model = b.model({"x": ["N", 4, 6, 6]}, {"y": ["N", 180]})
    if domain:
        model.opset_import.add(domain=domain, version=1)
    return model


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_the_encodings_of_a_quantized_model_are_kept(tmp_path: Path, domain: str) -> None:
    model = qdq(domain)
    value = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    clean = compare(model, tmp_path / "m.onnx", value)
    for kind in ("QuantizeLinear", "DequantizeLinear"):
        before, after = ([n for n in made.graph.node if n.op_type == kind] for made in (model, clean))
        assert len(before) == len(after)
    known = {tensor.name: numpy_helper.to_array(tensor) for tensor in clean.graph.initializer}
    assert known["stored"].dtype == np.int8
    np.testing.assert_array_equal(known["scales"], np.linspace(0.001, 0.005, 5, dtype=np.float32))
