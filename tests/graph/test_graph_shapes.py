"""Shapes, open dimensions and multiply-accumulates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from graph_models import Builder, conv_model
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.errors import StepError
from anfbuild.graph import Session, node_macs, open_dimensions, value_shapes


def test_shapes_of_inputs_constants_and_values():
    model = conv_model()
    inner, weights = model.graph.node[0].output[0], model.graph.initializer[0].name
    assert value_shapes(model) == {"x": (1, 3, 8, 8), weights: (4, 3, 3, 3), inner: (1, 4, 8, 8), "y": (1, 4, 8, 8)}


def test_an_open_shape_is_refused_with_its_node():
    with pytest.raises(StepError, match="no static shape") as caught:
        value_shapes(conv_model(height="h"))
    assert caught.value.where == "node conv (Conv)"


def test_shapes_pass_through_the_runtime_s_own_quantization_operators():
    b = Builder()
    scale, zero = b.constant(np.float32(0.1)), b.constant(np.uint16(0))
    q = b.node("QuantizeLinear", ["x", scale, zero], domain="com.microsoft", name="q")
    d = b.node("DequantizeLinear", [q, scale, zero], domain="com.microsoft", name="d")
    b.node("Relu", [d], "y", name="r")
    model = b.model({"x": [2, 3]}, {"y": None})
    model.opset_import.add(domain="com.microsoft", version=1)
    shapes = value_shapes(model)
    assert shapes[q] == shapes[d] == shapes["y"] == (2, 3)
    assert node_macs(model) == {"q": 0, "d": 0, "r": 0}


def test_the_macs_of_a_known_convolution():
    b = Builder()
    b.constant(np.zeros((256, 256, 3, 3), np.float32), "w")
    b.node("Conv", ["x", "w"], "y", pads=[1, 1, 1, 1], name="conv")
    macs = node_macs(b.model({"x": [1, 256, 112, 112]}, {"y": None}))
    assert macs == {"conv": 7_398_752_256}


@given(
    groups=st.sampled_from([1, 2, 4]),
    size=st.integers(3, 7),
    stride=st.integers(1, 3),
    kernel=st.integers(1, 3),
    transposed=st.booleans(),
)
def test_the_macs_of_convolutions_are_counted_tap_by_tap(groups, size, stride, kernel, transposed):
    """Ones through ones count the taps of every output: without padding, their sum is the number of products."""
    channels_in, channels_out = 4, 8
    b = Builder()
    shape = (channels_in, channels_out // groups) if transposed else (channels_out, channels_in // groups)
    b.constant(np.ones((*shape, kernel, kernel), np.float32), "w")
    op = "ConvTranspose" if transposed else "Conv"
    b.node(op, ["x", "w"], "y", group=groups, strides=[stride, stride], name="conv")
    model = b.model({"x": [1, channels_in, size, size]}, {"y": None})
    products = Session(model, threads=1).run({"x": np.ones((1, channels_in, size, size), np.float32)})["y"].sum()
    assert node_macs(model) == {"conv": int(products)}


@given(m=st.integers(1, 5), k=st.integers(1, 5), n=st.integers(1, 5), transposed=st.booleans())
def test_the_macs_of_products(m, k, n, transposed):
    b = Builder()
    b.constant(np.ones((k, n), np.float32), "w")
    b.node("Gemm", ["x", "w"], "y", transA=int(transposed), name="gemm")
    b.node("MatMul", ["z", "w"], "u", name="matmul")
    model = b.model({"x": [k, m] if transposed else [m, k], "z": [2, 3, m, k]}, {"y": None, "u": None})
    assert node_macs(model) == {"gemm": m * k * n, "matmul": 2 * 3 * m * k * n}


@pytest.mark.parametrize("name", ["", "conv"])
def test_nodes_without_names_of_their_own_are_refused(name):
    model = conv_model()
    model.graph.node[1].name = name
    with pytest.raises(StepError, match="Relu"):
        node_macs(model)


def test_open_dimensions_are_listed_with_proposals():
    b = Builder()
    b.node("Relu", ["x"], "y")
    model = b.model({"x": ["batch", 3, "h", -1], "tokens": [1, "length"]}, {"y": None})
    found = [(d.input, d.index, d.symbol, d.proposals) for d in open_dimensions(model)]
    assert found == [
        ("x", 0, "batch", (1,)),
        ("x", 2, "h", (320, 640, 960)),
        ("x", 3, "", (320, 640, 960)),
        ("tokens", 1, "length", (32, 64, 128)),
    ]


def test_initializers_are_no_open_inputs():
    b = Builder()
    b.node("MatMul", ["x", b.weights(2, 2)], "y")
    assert open_dimensions(b.model({"x": [1, 2], b.initializers[0].name: ["a", "b"]}, {"y": None}, ir=3)) == []


def test_a_scalar_has_an_empty_shape():
    b = Builder()
    b.node("ReduceSum", ["x"], "y", keepdims=0)
    shapes = value_shapes(b.model({"x": [2, 3]}, {"y": None}))
    assert shapes["y"] == ()
    assert math.prod(shapes["y"]) == 1


def test_contradicting_shapes_do_not_pass():
    b = Builder()
    b.node("MatMul", ["x", b.weights(5, 2)], "y", name="product")
    model = b.model({"x": [1, 4]}, {"y": None})
    with pytest.raises(StepError) as caught:
        value_shapes(model)
    assert caught.value.where == "node product (MatMul)"


@pytest.mark.parametrize(
    ("shape", "proposed"),
    [
        (["batch_size", "sequence_length"], [1, 128]),
        (["?", "?"], [1, 128]),
        (["T", "N", 80], [128, 1]),
        (["n", "channels", "height", "width"], [1, 3, 960, 960]),
        (["a", "b1", "c1", "d1"], [1, 3, 960, 960]),
        (["a", "b1", "c1", 3], [1, 960, 960]),
    ],
)
def test_sizes_are_proposed_by_name_and_else_by_place(shape, proposed):
    b = Builder()
    b.node("Relu", ["x"], "y")
    found = open_dimensions(b.model({"x": shape}, {"y": None}))
    assert [dimension.proposals[-1] for dimension in found] == proposed
