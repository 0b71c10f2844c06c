"""A TensorFlow Lite file and the ONNX model that is read from it compute the same, with few turns of the dimensions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from tflite_cases import CASES, Case, floats, identity, one_operator
from tflite_files import File

from anfbuild import graph
from anfbuild.errors import StepError
from anfbuild.sources.readers import read

SAME, VALID, RELU, RELU6 = 0, 1, 1, 3


def count(model: onnx.ModelProto, kind: str) -> int:
    return sum(node.op_type == kind for node in model.graph.node)


def run(model: onnx.ModelProto, *values: np.ndarray) -> list[np.ndarray]:
    session = graph.Session(model, threads=1)
    return list(session.run(dict(zip(session.inputs, values, strict=True))).values())


@pytest.mark.parametrize("first", [False, True], ids=["own", "first"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_operator_computes_what_numpy_does(tmp_path: Path, case: Case, first: bool) -> None:
    path = tmp_path / "one.tflite"
    path.write_bytes(one_operator(case, first=first))
    model = read(path)
    random = np.random.default_rng(5)
    values = [random.uniform(0.1, 4, case.shape).astype(np.float32) for _ in range(case.inputs)]
    (found,) = run(model, *values)
    expected = np.asarray(case.expected(*values, *case.constants))
    assert found.shape == tuple(case.made)
    assert found.dtype == np.dtype(case.dtype)
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-5)
    turned, _, _ = graph.clean(model, {})
    np.testing.assert_allclose(run(turned, *values)[0], expected, rtol=2e-5, atol=2e-5)


def convolve(x: np.ndarray, w: np.ndarray, stride: int, dilation: int, begin: int) -> np.ndarray:
    """A convolution with SAME padding, begun `begin` rows and columns outside; w is [out, h, w, in]."""
    size = -(-x.shape[1] // stride)
    padded = np.pad(x, [(0, 0), (begin, 9), (begin, 9), (0, 0)])
    made = np.zeros((1, size, size, w.shape[0]), np.float32)
    for i in range(size):
        for j in range(size):
            reach = dilation * np.arange(w.shape[1])
            window = padded[0][np.ix_(i * stride + reach, j * stride + reach)]
            made[0, i, j] = np.einsum("hwc,ohwc->o", window, w)
    return made


def conv_file(x: Any, weights: int, bias: int, file: File, kind: str, made: tuple[int, ...], **options: Any) -> int:
    y = file.tensor("y", made)
    kept = {"Padding": SAME, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1, **options}
    name = "DepthwiseConv2DOptions" if kind.startswith("DEPTH") else "Conv2DOptions"
    file.operator(kind, [x, weights, bias], [y], (name, kept))
    return y


@pytest.mark.parametrize(("stride", "dilation", "begin"), [(1, 1, 1), (2, 1, 0), (1, 2, 2)])
def test_same_padding_puts_the_odd_row_last(tmp_path: Path, stride: int, dilation: int, begin: int) -> None:
    file, w, b = File(), floats(4, 3, 3, 2) - 1, floats(4)
    x = file.tensor("x", (1, 6, 6, 2))
    size = 6 // stride
    options = {"StrideH": stride, "StrideW": stride, "DilationHFactor": dilation, "DilationWFactor": dilation}
    options["FusedActivationFunction"] = RELU6
    y = conv_file(x, file.constant(w), file.constant(b), file, "CONV_2D", (1, size, size, 4), **options)
    model = read(file.save(tmp_path / "m.tflite", [x], [y]))
    value = floats(1, 6, 6, 2)
    expected = np.clip(convolve(value, w, stride, dilation, begin) + b, 0, 6)
    np.testing.assert_allclose(run(model, value)[0], expected, rtol=1e-5, atol=1e-5)


def test_a_depthwise_convolution_may_make_several_of_each_channel(tmp_path: Path) -> None:
    file, w = File(), floats(1, 3, 3, 4)
    x = file.tensor("x", (1, 5, 5, 2))
    y = conv_file(x, file.constant(w), file.constant(np.zeros(4)), file, "DEPTHWISE_CONV_2D", (1, 5, 5, 4))
    model = read(file.save(tmp_path / "m.tflite", [x], [y]))
    value = floats(1, 5, 5, 2)
    whole = np.zeros((4, 3, 3, 2), np.float32)
    for out in range(4):
        whole[out, :, :, out // 2] = w[0, :, :, out]
    np.testing.assert_allclose(run(model, value)[0], convolve(value, whole, 1, 1, 1), rtol=1e-5)


@pytest.mark.parametrize(("padding", "size"), [(SAME, 6), (VALID, 7)])
def test_a_transposed_convolution_and_that_of_mediapipe(tmp_path: Path, padding: int, size: int) -> None:
    w, b, value = floats(2, 3, 3, 4), floats(2), floats(1, 3, 3, 4)
    whole = np.zeros((1, 7, 7, 2), np.float32)
    for i in range(3):
        for j in range(3):
            whole[0, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] += np.einsum("c,ohwc->hwo", value[0, i, j], w)
    made = (1, size, size, 2)
    for kind in ("TRANSPOSE_CONV", "Convolution2DTransposeBias"):
        file = File()
        x, weights, bias = file.tensor("x", (1, 3, 3, 4)), file.constant(w), file.constant(b)
        y = file.tensor("y", made)
        if kind == "TRANSPOSE_CONV":
            options = ("TransposeConvOptions", {"Padding": padding, "StrideH": 2, "StrideW": 2})
            file.operator(kind, [file.constant(made, np.int32), weights, x, bias], [y], options)
        else:
            file.operator(kind, [x, weights, bias], [y], custom=np.array([padding + 1, 2, 2], np.int32).tobytes())
        found = run(read(file.save(tmp_path / "m.tflite", [x], [y])), value)[0]
        np.testing.assert_allclose(found, whole[:, :size, :size] + b, rtol=1e-5)


def chain(file: File) -> tuple[int, int]:
    """x, and what a row of operators that do not ask for an order makes of it between two convolutions."""
    x = file.tensor("x", (1, 4, 6, 3))
    held = identity(file, x, (1, 4, 6, 3))
    a = file.tensor("a", (1, 4, 6, 3))
    file.operator("MUL", [held, file.constant(floats(3))], [a], ("MulOptions", {}))
    b = file.tensor("b", (1, 4, 6, 3))
    file.operator("ADD", [a, held], [b], ("AddOptions", {}))
    c = file.tensor("c", (1, 4, 6, 6))
    file.operator("CONCATENATION", [a, b], [c], ("ConcatenationOptions", {"Axis": 3}))
    d = file.tensor("d", (1, 5, 6, 6))
    file.operator("PAD", [c, file.constant([[0, 0], [0, 1], [0, 0], [0, 0]], np.int32)], [d])
    return x, identity(file, d, (1, 5, 6, 6))


def test_turns_remain_at_the_ends_alone(tmp_path: Path) -> None:
    file = File()
    x, end = chain(file)
    image = read(file.save(tmp_path / "m.tflite", [x], [end]))
    assert count(image, "Transpose") == 2
    assert [value.name for value in image.graph.input] == ["x"]
    assert graph.interface(image)["inputs"]["x"]["shape"] == [1, 4, 6, 3]
    assert graph.interface(image)["outputs"] == {"held8": {"shape": [1, 5, 6, 6], "dtype": "float32"}}
    mean = file.tensor("mean", (1, 6))
    file.operator("MEAN", [end, file.constant([1, 2], np.int32)], [mean], ("ReducerOptions", {"KeepDims": False}))
    assert count(read(file.save(tmp_path / "m.tflite", [x], [mean])), "Transpose") == 1


def test_a_turn_that_moves_no_number_is_a_reshape(tmp_path: Path) -> None:
    file = File()
    x = file.tensor("x", (1, 4, 6, 3))
    y = conv_file(x, file.constant(floats(1, 3, 3, 3)), file.constant([0.0]), file, "CONV_2D", (1, 4, 6, 1))
    model = read(file.save(tmp_path / "m.tflite", [x], [y]))
    assert [node.op_type for node in model.graph.node] == ["Transpose", "Conv", "Reshape"]


def test_sparse_constants_of_half_precision_become_plain_weights(tmp_path: Path) -> None:
    dense = np.array([[0, 2, 0, 0], [0, 0, 0, 0], [5, 0, 0, 7]], np.float16)
    blocks = np.array([[1, 2, 0, 0], [3, 4, 0, 0]], np.float16)
    for values, matrix, sparsity in (
        ([2, 5, 7], dense, ([0, 1], [], [3, ([0, 1, 1, 3], [1, 0, 3])])),
        ([1, 2, 3, 4], blocks, ([0, 1, 2, 3], [0, 1], [1, ([0, 1], [0]), 2, 2])),
    ):
        file = File()
        x = file.tensor("x", (1, 4))
        sparse = file.sparse(values, matrix.shape, sparsity, np.float16)
        half, single = file.tensor("half", matrix.shape, np.float16), file.tensor("single", matrix.shape)
        file.operator("DENSIFY", [sparse], [half])
        file.operator("DEQUANTIZE", [half], [single])
        y = file.tensor("y", (1, len(matrix)))
        file.operator("FULLY_CONNECTED", [x, single, -1], [y], ("FullyConnectedOptions", {}))
        model = read(file.save(tmp_path / "m.tflite", [x], [y]))
        assert [node.op_type for node in model.graph.node] == ["Gemm"]
        value = floats(1, 4)
        np.testing.assert_allclose(run(model, value)[0], value @ matrix.T.astype(np.float32), rtol=1e-6)


def quantized(file: File) -> tuple[int, int]:
    """int8 x -> Conv with a scale a channel and a fused ReLU -> Reshape -> int8 y."""
    x = file.tensor("x", (1, 2, 2, 3), np.int8, scale=[0.5], zero_point=[3])
    w = file.constant(np.arange(-6, 6).reshape(4, 1, 1, 3), np.int8, scale=[0.1, 0.2, 0.3, 0.4], axis=0)
    b = file.constant([10, -10, 20, 0], np.int32, scale=[0.05, 0.1, 0.15, 0.2])
    hidden = file.tensor("hidden", (1, 2, 2, 4), np.int8, scale=[0.25], zero_point=[-128])
    options = {"Padding": 1, "StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    file.operator("CONV_2D", [x, w, b], [hidden], ("Conv2DOptions", {**options, "FusedActivationFunction": RELU}))
    y = file.tensor("y", (1, 16), np.int8, scale=[0.25], zero_point=[-128])
    file.operator("RESHAPE", [hidden, file.constant([1, 16], np.int32)], [y])
    return x, y


def test_the_encodings_of_a_quantized_file_are_kept(tmp_path: Path) -> None:
    file = File()
    x, y = quantized(file)
    model = read(file.save(tmp_path / "m.tflite", [x], [y]))
    clean, _, _ = graph.clean(model, {})
    for made in (model, clean):
        known = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
        weights = [node for node in made.graph.node if node.op_type == "DequantizeLinear" and node.attribute]
        np.testing.assert_allclose(known[weights[0].input[1]], [0.1, 0.2, 0.3, 0.4])
        assert known[weights[0].input[0]].dtype == np.int8
        assert count(made, "Relu") == 0  # the encoding cuts off what is below 0
        value = np.random.default_rng(0).integers(-128, 128, (1, 2, 2, 3)).astype(np.int8)
        real = (value.astype(np.float32) - 3) * 0.5
        kernel = np.arange(-6, 6).reshape(4, 3) * np.array([[0.1], [0.2], [0.3], [0.4]])
        exact = np.maximum(real @ kernel.T + [0.5, -1, 3, 0], 0) / 0.25 - 128
        (found,) = run(made, value)
        assert found.dtype == np.int8
        assert np.abs(found.reshape(1, 2, 2, 4) - np.clip(np.round(exact), -128, 127)).max() <= 1


def test_weights_alone_may_be_quantized(tmp_path: Path) -> None:
    file, stored = File(), np.arange(12).reshape(4, 3)
    x, y = file.tensor("x", (1, 3)), file.tensor("y", (1, 4))
    single = file.tensor("single", (4, 3))
    file.operator("DEQUANTIZE", [file.constant(stored, np.int8, scale=[0.5])], [single])
    file.operator("FULLY_CONNECTED", [x, single, -1], [y], ("FullyConnectedOptions", {}))
    model = read(file.save(tmp_path / "m.tflite", [x], [y]))
    assert [node.op_type for node in model.graph.node] == ["DequantizeLinear", "Gemm"]
    value = floats(1, 3)
    np.testing.assert_allclose(run(model, value)[0], value @ stored.T * 0.5, rtol=1e-6)


def test_sixteen_bits_keep_their_encodings_too(tmp_path: Path) -> None:
    file = File()
    x = file.tensor("x", (1, 4), np.int16, scale=[0.001], zero_point=[0])
    y = file.tensor("y", (1, 4), np.int16, scale=[1 / 32768], zero_point=[0])
    file.operator("LOGISTIC", [x], [y])
    model = read(file.save(tmp_path / "m.tflite", [x], [y]))
    value = np.array([[-3000, 0, 1, 3000]], np.int16)
    expected = np.round(32768 / (1 + np.exp(-value * 0.001)))
    assert np.abs(run(model, value)[0] - expected).max() <= 1


def test_what_is_an_output_twice_or_an_input_too_comes_out(tmp_path: Path) -> None:
    file = File()
    x, y = file.tensor("x", (1, 4)), file.tensor("y", (1, 4))
    file.operator("ABS", [x], [y])
    model = read(file.save(tmp_path / "m.tflite", [x], [y, y]))
    assert [value.name for value in model.graph.output] == ["y"]
    same = file.tensor("same", (1, 4))
    file.operator("RESHAPE", [y, file.constant([1, 4], np.int32)], [same])
    model = read(file.save(tmp_path / "m.tflite", [x], [y, same]))
    value = -floats(1, 4)
    for found in run(model, value):
        np.testing.assert_array_equal(found, -value)


def test_an_operator_that_is_not_supported_is_named_with_its_number(tmp_path: Path) -> None:
    for kind in ("Landmarks2TransformMatrix", "UNIQUE"):
        file = File()
        x, y, z = (file.tensor(name, (1, 4)) for name in "xyz")
        file.operator("ABS", [x], [y])
        file.operator(kind, [y], [z])
        path = file.save(tmp_path / "m.tflite", [x], [z])
        with pytest.raises(StepError, match="not supported; it makes 'z'") as caught:
            read(path)
        shown = kind if kind.isupper() else f"CUSTOM {kind}"
        assert caught.value.where == f"{path}, operator 1 ({shown})"
        assert "Export the model without it" in (caught.value.remedy or "")


def bad(change: str, file: File) -> tuple[int, int]:
    """A file with one thing wrong."""
    x, y = file.tensor("x", (1, 4)), file.tensor("y", (1, 4))
    constant = file.constant(floats(4))
    if change == "open":
        file.tensors[x] = file.tensors[file.tensor("x", (1, 1), signature=(-1, -1))]
    if change == "constant":
        file.tensors[constant].shape = (5,)
    if change == "scale":
        file.tensors[y].dtype, file.tensors[y].scale, file.tensors[y].zero_point = np.int8, [0.0], [0]
    if change == "order":
        constant = file.tensor("nobody makes it", (1, 4))
    if change == "sparse":
        constant = file.sparse([1, 2], (2, 2), ([0, 1], [], [2, ([0, 1, 9], [0, 1])]))
    if change == "index":
        constant = 99
    file.operator("ADD", [x, constant], [y], ("AddOptions", {}))
    return x, y


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("open", "leaves its dimensions \\[1\\] open"),
        ("constant", "has 4 values, but its shape is \\[5\\]"),
        ("scale", "a scale that is not above 0"),
        ("order", "'nobody makes it' is read before"),
        ("sparse", "its parts do not fit together"),
        ("index", "no tensor 99"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused(tmp_path: Path, change: str, says: str) -> None:
    file = File()
    x, y = bad(change, file)
    path = file.save(tmp_path / "m.tflite", [x], [y])
    with pytest.raises(StepError, match=says) as caught:
        read(path)
    assert str(path) in (caught.value.where or "")
    assert caught.value.remedy


def test_what_has_the_name_of_such_a_file_alone_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    for content in (b"", b"no model", b"\x1c\0\0\0TFL3"):
        path.write_bytes(content)
        with pytest.raises(StepError, match="not a sound TensorFlow Lite file") as caught:
            read(path)
        assert caught.value.where == str(path)


def test_what_decides_a_shape_must_be_constant(tmp_path: Path) -> None:
    file = File()
    x, pads, y = file.tensor("x", (1, 4)), file.tensor("pads", (2, 2), np.int32), file.tensor("y", (1, 5))
    file.operator("PAD", [x, pads], [y])
    with pytest.raises(StepError, match="the padding is computed"):
        read(file.save(tmp_path / "m.tflite", [x, pads], [y]))
