import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.simulator.ops import Kind
from anfbuild.simulator.work import Work, workload


def _model(nodes, inputs, outputs, initializers):
    values = [
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in vs.items()] for vs in (inputs, outputs)
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in initializers.items()]
    graph = helper.make_graph(nodes, "g", *values, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _conv(channels=(64, 64), size=16, group=1, kernel=3):
    weights = np.zeros((channels[1], channels[0] // group, kernel, kernel), np.float32)
    node = helper.make_node("Conv", ["x", "w"], ["y"], name="conv", group=group, pads=[kernel // 2] * 4)
    space = [size, size]
    return _model([node], {"x": [1, channels[0], *space]}, {"y": [1, channels[1], *space]}, {"w": weights})


def _qdq_conv(activation=np.uint8, weight=np.int8):
    """x -> Q -> DQ -> Conv(DQ(w), DQ(bias)) -> Relu -> Q -> DQ -> y, 8 to 16 channels, 1x1, 10x10."""
    nodes = []

    def dequantized(name, axis=None):
        attributes = {} if axis is None else {"axis": axis}
        inputs = [name, "s", "z"] if axis is None else [name, "ws", "wz"]
        nodes.append(helper.make_node("DequantizeLinear", inputs, [f"{name}_dq"], name=f"dq_{name}", **attributes))
        return f"{name}_dq"

    def encoded(name):
        nodes.append(helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}_q"], name=f"q_{name}"))
        return dequantized(f"{name}_q")

    x = encoded("x")
    w = dequantized("w", axis=0)
    nodes.append(helper.make_node("DequantizeLinear", ["b", "bs", "bz"], ["b_dq"], name="dq_b", axis=0))
    nodes.append(helper.make_node("Conv", [x, w, "b_dq"], ["c"], name="conv"))
    nodes.append(helper.make_node("Relu", ["c"], ["r"], name="relu"))
    nodes.append(helper.make_node("Identity", [encoded("r")], ["y"], name="out"))
    constants = {
        "s": np.float32(0.1),
        "z": np.array(0, activation),
        "w": np.zeros((16, 8, 1, 1), weight),
        "ws": np.ones(16, np.float32),
        "wz": np.zeros(16, weight),
        "b": np.zeros(16, np.int32),
        "bs": np.ones(16, np.float32),
        "bz": np.zeros(16, np.int32),
    }
    return _model(nodes, {"x": [1, 8, 10, 10]}, {"y": [1, 16, 10, 10]}, constants)


def _only(model) -> Work:
    (work,) = workload(model)
    return work


def test_a_3x3_convolution_of_256_channels_on_112x112_is_7_4_gmac():
    work = _only(_conv((256, 256), 112))
    assert work.macs == work.padded_macs == 7_398_752_256
    assert work.activation_bytes == 2 * 256 * 112 * 112 * 2
    assert work.weight_bytes == 256 * 256 * 9 * 2
    assert (work.kind, work.precision) == (Kind.MATRIX, "float")


@pytest.mark.parametrize(
    ("activation", "weight", "precision", "activation_bytes", "weight_bytes"),
    [
        (np.uint8, np.int8, "w8a8", 2400, 128 + 64),
        (np.uint16, np.int8, "w8a16", 4800, 128 + 64),
        (np.int16, np.int16, "w16a16", 4800, 256 + 64),
    ],
)
def test_qdq_says_how_wide_values_are(activation, weight, precision, activation_bytes, weight_bytes):
    work = _only(_qdq_conv(activation, weight))
    assert (work.name, work.precision) == ("conv", precision)
    assert work.activation_bytes == activation_bytes
    assert work.weight_bytes == weight_bytes


def test_four_bit_weights_take_half_a_byte():
    model = _qdq_conv()
    for tensor in model.graph.initializer:
        if tensor.name in ("w", "wz"):
            packed = helper.make_tensor(tensor.name, TensorProto.INT4, tensor.dims, [0] * int(np.prod(tensor.dims)))
            tensor.CopyFrom(packed)
    work = _only(model)
    assert work.precision == "w4a8"
    assert work.weight_bytes == 64 + 64


def test_encoding_of_constant_node_and_of_output_dtype():
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s"], ["xq"], name="q", output_dtype=TensorProto.UINT16),
        helper.make_node("DequantizeLinear", ["xq", "s"], ["xd"], name="dq"),
        helper.make_node("Constant", [], ["w"], name="c", value=numpy_helper.from_array(np.zeros((4, 8), np.int8))),
        helper.make_node("DequantizeLinear", ["w", "s"], ["wd"], name="dqw"),
        helper.make_node("MatMul", ["xd", "wd"], ["m"], name="mm"),
        helper.make_node("QuantizeLinear", ["m", "s"], ["mq"], name="qm"),
        helper.make_node("DequantizeLinear", ["mq", "s"], ["y"], name="dqm"),
    ]
    work = _only(_model(nodes, {"x": [2, 4]}, {"y": [2, 8]}, {"s": np.float32(1)}))
    assert work.precision == "w8a16"
    assert (work.activation_bytes, work.weight_bytes) == (2 * 4 * 2 + 2 * 8, 32)


def test_channels_are_padded_to_blocks():
    assert _only(_conv((3, 40), kernel=1)).padded_macs == 32 * 64 * 256
    assert _only(_conv((64, 64), group=2, kernel=1)).padded_macs == 2 * 32 * 32 * 256
    grouped = _only(
        _conv((64, 64), group=16, kernel=1)
    )  # sixteen padded groups would cost four times the dense product
    assert grouped.padded_macs == 64 * 64 * 256


def test_depthwise_is_a_kind_of_its_own():
    work = _only(_conv((64, 64), group=64))
    assert work.kind is Kind.DEPTHWISE
    assert work.padded_macs == work.macs == 64 * 9 * 256


def test_transposed_convolution_counts_its_inputs_positions():
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], name="up", strides=[2, 2])
    weights = {"w": np.zeros((32, 64, 2, 2), np.float32)}
    work = _only(_model([node], {"x": [1, 32, 5, 5]}, {"y": [1, 64, 10, 10]}, weights))
    assert work.macs == work.padded_macs == 25 * 32 * 64 * 4


def test_activations_made_of_many_nodes_are_fused():
    conv = _conv().graph
    chains = {
        "silu": [("Sigmoid", ["c"], "s"), ("Mul", ["c", "s"], "y")],
        "gelu": [
            ("Div", ["c", "k"], "d"),
            ("Erf", ["d"], "e"),
            ("Add", ["e", "k"], "a"),
            ("Mul", ["c", "a"], "m"),
            ("Mul", ["m", "k"], "y"),
        ],
    }
    for chain in chains.values():
        nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4)]
        nodes += [helper.make_node(op, inputs, [out], name=out) for op, inputs, out in chain]
        shape = {"x": [1, 64, 16, 16]}, {"y": [1, 64, 16, 16]}
        weights = numpy_helper.to_array(conv.initializer[0])
        work = _only(_model(nodes, *shape, {"w": weights, "k": np.float32(2)}))
        assert work.name == "conv"


def test_residual_add_and_first_node_are_not_fused():
    nodes = [
        helper.make_node("Mul", ["x", "k"], ["m"], name="normalise"),
        helper.make_node("Sigmoid", ["m"], ["s"], name="fused"),
        helper.make_node("MaxPool", ["s"], ["p"], name="pool", kernel_shape=[1, 1]),
        helper.make_node("Add", ["p", "s"], ["y"], name="residual"),
    ]
    works = workload(_model(nodes, {"x": [1, 1, 4, 4]}, {"y": [1, 1, 4, 4]}, {"k": np.float32(2)}))
    assert [work.name for work in works] == ["normalise", "pool", "residual"]
    assert works[2].activation_bytes == 3 * 16 * 2


def test_views_and_folded_constants_cost_nothing_and_lookups_read_only_their_rows():
    nodes = [
        helper.make_node("Mul", ["table", "k"], ["scaled"], name="folded"),
        helper.make_node("Cast", ["x"], ["i"], name="cast", to=TensorProto.INT64),
        helper.make_node("Gather", ["scaled", "i"], ["rows"], name="gather"),
        helper.make_node("Reshape", ["rows", "shape"], ["y"], name="reshape"),
    ]
    constants = {"table": np.zeros((1000, 8), np.float32), "k": np.float32(2), "shape": np.array([16])}
    work = _only(_model(nodes, {"x": [2]}, {"y": [16]}, constants))
    assert work.name == "gather"
    assert work.weight_bytes == 0
    assert work.activation_bytes == 2 * 2 + 16 * 2


def test_a_convolution_without_channels_costs_nothing():
    assert _only(_conv(channels=(3, 0))).macs == 0


def test_a_convolution_of_no_groups_is_refused_by_name():
    model = _conv()
    model.graph.node[0].attribute[0].i = 0
    assert model.graph.node[0].attribute[0].name == "group"
    with pytest.raises(StepError, match=r"conv .*of 0 groups"):
        workload(model)


def test_unknown_operator_is_costed_as_movement():
    node = helper.make_node("Hardmax", ["x"], ["y"], name="odd")
    work = _only(_model([node], {"x": [4, 4]}, {"y": [4, 4]}, {}))
    assert (work.kind, work.known, work.macs, work.activation_bytes) == (Kind.MOVEMENT, False, 0, 64)


def test_open_shape_is_refused():
    node = helper.make_node("NonZero", ["x"], ["y"], name="nz")
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.INT64, [1, None])],
    )
    with pytest.raises(StepError, match="nz"):
        workload(helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)]))
