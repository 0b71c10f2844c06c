"""The failures F1 to F11 that real models met: each is found before anything is calibrated, and the build mends it or
refuses it, so that the HTP computes what the CPU does. Where a test elsewhere says so, its name stands here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, copy, op_types
from onnx import TensorProto

from anfbuild.errors import RecipeError
from anfbuild.graph import Session, clean, serialize
from anfbuild.graph.constraints import Aim, Finding, Precision, inspect
from anfbuild.qnn import Options, unavailable
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.emulate import emulate
from anfbuild.quantization import SCHEMES, check
from anfbuild.quantization.quantize import quantize
from anfbuild.quantization.statistics import collect

X = {"x": [1, 8, 6, 6]}


def findings(model: onnx.ModelProto, scheme: str = "int8", arch: str = "v75", rule: str = "") -> list[Finding]:
    found = SCHEMES[scheme]
    precision = Precision(found.name, found.activation_bits, found.weight_bits, found.per_channel)
    result = inspect(model, Aim("chip", arch, 8, True, precision))
    return [finding for finding in result.findings if finding.rule == rule]


def depthwise() -> onnx.ModelProto:
    b = Builder()
    b.node("Conv", ["x", b.weights(8, 1, 1, 1)], "y", group=8, name="n")
    return b.model(X, {"y": None})


def channel_pad() -> onnx.ModelProto:
    b = Builder()
    b.node("Pad", ["x", b.constant(np.array([0, 0, 0, 0, 0, 8, 0, 0]))], "y", name="n")
    return b.model(X, {"y": None})


def channel_pad_of_an_axis() -> onnx.ModelProto:
    b = Builder()
    b.node("Pad", ["x", b.constant(np.array([0, 8])), "", b.constant(np.array([-3]))], "y", name="n")
    return b.model(X, {"y": None}, opset=18)


def resize() -> onnx.ModelProto:
    b = Builder()
    scales = b.constant(np.array([1, 1, 2, 2], np.float32))
    b.node("Resize", ["x", "", scales], "y", mode="nearest", nearest_mode="floor", name="n")
    return b.model(X, {"y": None})


def lstm() -> onnx.ModelProto:
    b = Builder()
    weights = [b.weights(1, 16, 36), b.weights(1, 16, 4)]
    rows = b.node("Reshape", ["x", b.constant(np.array([8, 1, 36]))])
    b.node("LSTM", [rows, *weights], "y", hidden_size=4, name="n")
    return b.model(X, {"y": None})


def transposed_convolution() -> onnx.ModelProto:
    b = Builder()
    value = b.node("ConvTranspose", ["x", b.weights(8, 4, 2, 2)], strides=[2, 2], name="n")
    b.node("Add", [value, b.weights(4, 1, 1)], "y")
    return b.model(X, {"y": None})


def old_opset() -> onnx.ModelProto:
    b = Builder()
    b.node("Conv", ["x", b.weights(4, 8, 1, 1)], "y", name="n")
    return b.model(X, {"y": None}, opset=11)


def layernorm() -> onnx.ModelProto:
    b = Builder()
    b.node("LayerNormalization", ["x", b.positive(6), b.weights(6)], "y", name="n")
    return b.model(X, {"y": None})


def tied_resize() -> onnx.ModelProto:
    b = Builder()
    scales = b.constant(np.array([1, 1, 1.5, 1.5], np.float32))
    b.node("Resize", ["x", "", scales], "y", mode="nearest", name="n")
    return b.model(X, {"y": None})


def uneven_pool() -> onnx.ModelProto:
    b = Builder()
    b.node("AveragePool", ["x"], "y", name="n", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    return b.model(X, {"y": None})


def scattered() -> onnx.ModelProto:
    b = Builder()
    rows = b.constant(np.zeros((1, 8, 1, 6), np.int64))
    b.node("ScatterElements", ["x", rows, b.constant(np.full((1, 8, 1, 6), 9, np.float32))], "y", name="n", axis=2)
    return b.model(X, {"y": None})


def gathered() -> onnx.ModelProto:
    b = Builder()
    rows = b.node("Transpose", ["x"], perm=[0, 2, 3, 1])
    b.node("Gather", [rows, b.constant(np.arange(40) % 6)], "y", name="n", axis=2)
    return b.model(X, {"y": None})


def gathered_resize() -> onnx.ModelProto:
    """Its samples are those of no mode that is right, so that it becomes a Gather: of pieces of 8 elements."""
    b = Builder()
    rows = b.node("Transpose", ["x"], perm=[0, 2, 3, 1])
    sizes = b.constant(np.array([1, 6, 33, 8]))
    b.node("Resize", [rows, "", "", sizes], "y", mode="nearest", nearest_mode="ceil", name="n")
    return b.model(X, {"y": None})


MENDED = {
    "F1": (depthwise, "int8", "depthwise-1x1", "lower_depthwise"),
    "F2": (channel_pad, "int8", "channel-pad", "lower_channel_pad"),
    "F2, of an axis": (channel_pad_of_an_axis, "int8", "channel-pad", "lower_channel_pad"),
    "F4": (resize, "int8", "nearest-resize", "exact_resize"),
    "F4, between two": (tied_resize, "int8", "nearest-resize", "exact_resize"),
    "F6": (lstm, "int8", "recurrent", "unroll_recurrent"),
    "F9": (old_opset, "int8_per_channel", "old-opset", "upgrade_opset"),
    "F4, in Gathers": (gathered_resize, "int8", "nearest-resize", "exact_resize"),
    "docs/htp.md, Gather": (gathered, "int8", "wrong-gather", "exact_gather"),
    "docs/htp.md": (transposed_convolution, "int8", "convtranspose-add", "fold_affine"),
}


@pytest.mark.parametrize(("build", "scheme", "rule", "mended_by"), MENDED.values(), ids=MENDED)
def test_it_is_found_and_the_pass_that_is_named_mends_it_with_the_same_values(build, scheme, rule, mended_by) -> None:
    source = build()
    (finding,) = findings(copy(source), scheme, rule=rule)
    assert (finding.mended_by, finding.severity.value) == (mended_by, "note")
    cleaned = clean(source, {})
    assert mended_by in {result.name for result in cleaned.passes if result.changed}
    assert findings(cleaned.model, scheme, rule=rule) == []
    assert_same_floats(source, cleaned.model, **X)


def steps_off(model: onnx.ModelProto, scheme: str, folder: Path) -> tuple[int, float]:
    """Partitions on the HTP, and how far the emulator is from the CPU: the root mean square, in 1/256 of the range."""
    feeds = {"x": np.random.default_rng(0).uniform(-2, 3, X["x"]).astype(np.float32)}
    qdq, encodings = quantize(model, collect(model, [("sample", feeds)]), scheme, "minmax")
    options = Options(57, "v75")
    built = compile_context(serialize(qdq), options, folder / "c")
    ((name, emulated),) = emulate(folder / "c", [feeds], options).outputs[0].items()
    span = float(np.max(encodings.activations[name].scale)) * 2 ** SCHEMES[scheme].activation_bits
    difference = emulated.astype(np.float64) - Session(qdq).run(feeds)[name]
    return built.partitions, float(np.sqrt(np.square(difference).mean())) / span * 256


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
@pytest.mark.parametrize(
    ("build", "scheme"),
    [*((build, scheme) for build, scheme, *_ in MENDED.values()), (layernorm, "int8_per_channel")],
    ids=[*MENDED, "F10"],
)
def test_what_is_mended_computes_on_the_htp_what_the_cpu_does(build, scheme, tmp_path) -> None:
    partitions, off = steps_off(clean(build(), {}).model, scheme, tmp_path)
    assert partitions == 1
    assert off < 1.5


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
@pytest.mark.parametrize("build", [resize, tied_resize, transposed_convolution, uneven_pool, scattered, gathered])
def test_what_a_rule_calls_wrong_is_wrong_where_nothing_mends_it(build, tmp_path) -> None:
    model = onnx.shape_inference.infer_shapes(build(), data_prop=True)
    for position, node in enumerate(model.graph.node):
        node.name = node.name or f"#{position}"
    assert steps_off(model, "int8", tmp_path)[1] > 2


@pytest.mark.parametrize(
    ("node", "rule"),
    [
        (("Conv", {"group": 8, "strides": [2, 2]}), "depthwise-1x1"),
        (("Pad", {"mode": "reflect"}), "channel-pad"),
        (("Resize", {"coordinate_transformation_mode": "tf_crop_and_resize"}), "nearest-resize"),
    ],
)
def test_what_its_pass_leaves_is_an_error(node, rule) -> None:
    b = Builder()
    op_type, attributes = node
    inputs = {
        "Conv": [b.weights(8, 1, 1, 1)],
        "Pad": [b.constant(np.array([0, 0, 0, 0, 0, 4, 0, 0]))],
        "Resize": [b.constant(np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32)), "", b.constant(np.array([1, 8, 9, 9]))],
    }[op_type]
    b.node(op_type, ["x", *inputs], "y", name="n", **attributes)
    (finding,) = findings(b.model(X, {"y": None}), rule=rule)
    assert (finding.node, finding.mended_by, finding.severity.value) == ("n", None, "error")


def test_a_channel_pad_of_a_computed_value_is_an_error() -> None:
    b = Builder()
    value = b.node("ReduceMax", ["x"], keepdims=0)
    b.node("Pad", ["x", b.constant(np.array([0, 0, 0, 0, 0, 8, 0, 0])), value], "y", name="n")
    model = b.model(X, {"y": None})
    (finding,) = findings(copy(model), rule="channel-pad")
    assert (finding.mended_by, finding.severity.value) == (None, "error")
    assert "Pad" in op_types(clean(model, {}).model)


@pytest.mark.parametrize(
    ("data", "count", "axis", "wrong"),
    [
        ([1, 8, 16, 8], 32, 2, "int8 int8_per_channel a16w8"),
        ([1, 8, 16, 8], 31, 2, ""),
        ([1, 8, 16, 12], 32, 2, ""),
        ([1, 8, 16, 32], 40, -2, "int8 int8_per_channel"),
        ([1, 8, 16, 4], 40, 2, "a16w8"),
        ([1, 20, 2, 8], 40, 1, "int8 int8_per_channel a16w8"),
        ([1, 20, 8, 8], 40, 1, ""),
        ([8, 16], 64, 1, ""),
        ([2, 20, 16], 40, 1, "int8 int8_per_channel a16w8"),
    ],
)
def test_a_gather_is_wrong_by_the_bytes_that_an_index_takes(data, count, axis, wrong) -> None:
    b = Builder()
    b.node("Gather", ["x", b.constant(np.zeros(count, np.int64))], "y", name="n", axis=axis)
    model = b.model({"x": data}, {"y": None})
    for scheme in ("int8", "int8_per_channel", "a16w8"):
        assert bool(findings(copy(model), scheme, rule="wrong-gather")) == (scheme in wrong.split())


def test_f1_is_right_with_weights_per_channel() -> None:
    b = Builder()
    b.node("Conv", ["x", b.weights(8, 1, 1, 1)], "y", name="n", group=8, strides=[2, 2])
    assert findings(b.model(X, {"y": None}), "int8_per_channel", rule="depthwise-1x1") == []


def test_f3_saturating_products_are_told_with_the_schemes_that_have_them() -> None:
    """See test_graph_execute.test_u8_by_s8_products_do_not_saturate."""
    assert [f.mended_by for f in findings(old_opset(), "int8_per_channel", rule="saturating-reference")] == ["execute"]
    assert findings(old_opset(), "int8", rule="saturating-reference") == []


def test_f5_what_would_stay_in_floating_point_is_found() -> None:
    """See test_quantization_quantize.test_open_shapes_and_other_floats_are_refused, and, of what was compiled,
    test_qnn_compile.test_a_float_model_is_seen_in_the_data_types."""
    b = Builder()
    b.node("Cast", [b.node("Relu", [b.node("Cast", ["x"], to=TensorProto.FLOAT16, name="half")])], "y", to=1)
    (finding,) = findings(b.model(X, {"y": None}), rule="other-float")
    assert (finding.node, finding.severity.value) == ("half", "error")


def test_f6_unrolled_it_has_no_recurrent_layer() -> None:
    assert "LSTM" not in op_types(clean(lstm(), {}).model)


def test_f7_an_open_dimension_is_found_with_a_size_to_try_and_the_build_refuses_it() -> None:
    b = Builder()
    b.node("Relu", ["x"], "y")
    model = b.model({"x": ["batch", 3, "height", 8]}, {"y": None})
    (finding,) = findings(model, rule="open-dimension")
    assert "model.inputs.x.shape=[1,3,960,8]" in finding.message
    assert finding.severity.value == "error"
    with pytest.raises(RecipeError, match=r"model\.inputs\.x\.shape=\[1,3,960,8\]"):
        clean(model, {})
    assert findings(clean(model, {"x": [1, 3, 8, 8]}).model, rule="open-dimension") == []


def test_f8_metadata_are_told_and_kept() -> None:
    model = depthwise()
    model.metadata_props.add(key="character", value="abc")
    (finding,) = findings(model, rule="metadata")
    assert "character" in finding.message
    assert [(entry.key, entry.value) for entry in clean(model, {}).model.metadata_props] == [("character", "abc")]


def test_f10_the_scale_of_a_layer_normalization_is_told() -> None:
    """See test_quantization_quantize.test_normalizations_have_a_scale_per_tensor_and_an_int32_bias."""
    model = layernorm()
    (finding,) = findings(model, "int8_per_channel", rule="layernorm-scale")
    assert finding.mended_by == "quantize"
    assert findings(model, "int8", rule="layernorm-scale") == []


def test_f11_a_precision_that_the_architecture_lacks_is_found_and_refused() -> None:
    """See test_qnn_compile.test_a_precision_that_the_chip_lacks_is_refused_with_qnns_reason."""
    (finding,) = findings(old_opset(), "a16w16", "v69", rule="wide-weights")
    assert finding.severity.value == "error"
    with pytest.raises(RecipeError, match="refuse 16-bit weights"):
        check("a16w16", "v69")
    assert findings(old_opset(), "a16w16", "v73", rule="wide-weights") == []
