"""All passes together: the same floats, one clean form."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, assert_traced, conv_model, op_types
from hypothesis import given, settings
from hypothesis import strategies as st

from anfbuild.errors import RecipeError, StepError
from anfbuild.graph import Cleaned, clean, node_macs, serialize, value_shapes


def exported() -> onnx.ModelProto:
    """What exporters write: opset 11, open sizes, Constant nodes, shape arithmetic, BatchNormalization, a spare."""
    b = Builder()
    hidden = b.node("Conv", ["x", b.weights(4, 3, 3, 3)], pads=[1, 1, 1, 1], strides=[2, 2])
    hidden = b.node("Relu", [b.batchnorm(hidden, 4)])
    hidden = b.node("ConvTranspose", [hidden, b.weights(4, 2, 2, 2)], strides=[2, 2])
    value = onnx.numpy_helper.from_array(np.array([[[[1.0]], [[2.0]]]], np.float32))
    hidden = b.node("Add", [hidden, b.node("Constant", [], value=value)])
    hidden = b.node("Dropout", [b.batchnorm(hidden, 2)])
    rows = b.node("Gather", [b.node("Shape", ["x"]), b.constant(np.array([0]))])
    shape = b.node("Concat", [rows, b.constant(np.array([-1]))], axis=0)
    b.node("Identity", [b.node("Reshape", [hidden, shape])], "y")
    b.node("GlobalAveragePool", [hidden], "spare")
    model = b.model({"x": ["n", 3, "h", "w"]}, {"y": ["n", "k"], "spare": ["n", 2, 1, 1]}, opset=11, ir=6)
    model.metadata_props.add(key="character", value="abc")
    return model


def test_an_exported_model_comes_out_clean_and_equal():
    before = exported()
    model, results, _ = clean(before, {"x": [1, 3, 8, 8]}, ["y"])
    assert op_types(model) == ["Conv", "Relu", "ConvTranspose", "Reshape"]
    assert [value.name for value in model.graph.output] == ["y"]
    assert model.opset_import[0].version == 17
    assert model.metadata_props[0].value == "abc"
    assert value_shapes(model)["y"] == (1, 128)
    assert sum(node_macs(model).values()) == 4 * 4 * 4 * 27 + 4 * 4 * 4 * 2 * 4
    assert {result.name for result in results if result.changed} >= {"fold_constants", "fold_affine"}
    assert before == exported()
    assert_same_floats(before, model, x=[1, 3, 8, 8])


def test_a_clean_model_stays_as_it_is():
    once, _, _ = clean(exported(), {"x": [1, 3, 8, 8]}, None)
    twice, results, _ = clean(once, {}, None)
    assert serialize(twice) == serialize(once)
    assert [result.name for result in results if result.changed] == ["infer_shapes"]


def test_the_bytes_do_not_depend_on_the_process():
    code = (
        "import hashlib; from test_graph_pipeline import exported; from anfbuild.graph import clean, serialize;"
        "print(hashlib.sha256(serialize(clean(exported(), {'x': [1, 3, 8, 8]})[0])).hexdigest())"
    )
    path = ":".join(p for p in sys.path if p)
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_a_model_of_ir_3_is_cleaned():
    b = Builder()
    b.node("MatMul", ["x", b.weights(2, 2)], "y")
    model = b.model({"x": ["n", 2], b.initializers[0].name: [2, 2]}, {"y": ["n", 2]}, opset=8, ir=3)
    cleaned, _, _ = clean(model, {"x": [1, 2]})
    assert [value.name for value in cleaned.graph.input] == ["x"]
    assert_same_floats(model, cleaned, x=[1, 2])


def test_the_user_s_mistakes_reach_the_user():
    with pytest.raises(RecipeError, match="no shape in the recipe fixes"):
        clean(exported(), {})
    with pytest.raises(RecipeError, match="no output 'z'"):
        clean(exported(), {"x": [1, 3, 8, 8]}, ["z"])
    b = Builder()
    b.node("MatMul", ["x", b.weights(5, 2)], "y")
    with pytest.raises(StepError, match="do not fit"):
        clean(b.model({"x": ["n", "k"]}, {"y": ["n", 2]}), {"x": [1, 4]})


def test_importing_the_room_does_not_import_onnxscript():
    code = "import sys, anfbuild.graph; sys.exit('onnxscript' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": ":".join(sys.path)}).returncode == 0


def convolution(b, value, data, _):
    """3x3 or 1x1, padded by itself or by a Pad of one kind or another before it."""
    size = data.draw(st.sampled_from([1, 3]))
    mode = data.draw(st.sampled_from(["own", "constant", "reflect", "edge"])) if size == 3 else "none"
    if mode in ("constant", "reflect", "edge"):
        value = b.node("Pad", [value, b.constant(np.array([0, 0, 1, 1] * 2)), b.weights()][:3], mode=mode)
    pads = {"pads": [1, 1, 1, 1]} if mode == "own" else {}
    return b.node("Conv", [value, b.weights(4, 2, size, size)], group=2, **pads)


def constant(b, value, data, _):
    shape = data.draw(st.sampled_from([(1, 4, 1, 1), (4, 1, 1), (6,), (1,)]))
    return b.node(data.draw(st.sampled_from(["Add", "Sub", "Mul", "Div"])), [value, b.positive(*shape)])


def wider(b, value, *_):
    value = b.node("Pad", [value, b.constant(np.array([0, 1, 0, 0, 0, 1, 0, 0]))])
    return b.node("Conv", [value, b.weights(4, 6, 1, 1)])


def gelu(b, value, *_):
    total = b.node(
        "Add", [b.node("Erf", [b.node("Div", [value, b.constant(np.float32(2**0.5))])]), b.constant(np.float32(1))]
    )
    return b.node("Mul", [b.node("Mul", [value, total]), b.constant(np.float32(0.5))])


def hardswish(b, value, *_):
    clip = b.node("Clip", [b.node("Add", [value, b.constant(np.float32(3))]), *map(b.constant, np.float32([0, 6]))])
    return b.node("Div", [b.node("Mul", [value, clip]), b.constant(np.float32(6))])


def layernorm(b, value, *_):
    centred = b.node("Sub", [value, b.node("ReduceMean", [value], axes=[-1])])
    square = b.node("ReduceMean", [b.node("Pow", [centred, b.constant(np.float32(2))])], axes=[-1])
    root = b.node("Sqrt", [b.node("Add", [square, b.constant(np.float32(0.1))])])
    return b.node("Mul", [b.node("Div", [centred, root]), b.weights(6)])


def rows(b, value, *_):
    """(1, 4, 6, 6) as the rows of a product, normalized."""
    flat = b.node("Reshape", [value, b.constant(np.array([24, 6]))])
    product = b.batchnorm(b.node("MatMul", [flat, b.weights(6, 6)]), 6)
    return b.node("Reshape", [product, b.constant(np.array([1, 4, 6, 6]))])


PIECES = {
    "conv": convolution,
    "deconv": lambda b, v, *_: b.node("ConvTranspose", [v, b.weights(4, 4, 1, 1), b.weights(4)]),
    "depthwise": lambda b, v, *_: b.node("Conv", [v, b.weights(4, 1, 1, 1), b.weights(4)], group=4),
    "norm": lambda b, v, *_: b.batchnorm(v, 4),
    "constant": constant,
    "identity": lambda b, v, *_: b.node("Identity", [v]),
    "dropout": lambda b, v, *_: b.node("Dropout", [v]),
    "transpose": lambda b, v, *_: b.node("Transpose", [v], perm=[0, 1, 3, 2]),
    "add": lambda b, v, data, values: b.node("Add", [v, data.draw(st.sampled_from(values))]),
    "computed": lambda b, v, *_: b.node("Mul", [v, b.node("Sigmoid", [b.weights(4, 1, 1)])]),
    "einsum": lambda b, v, *_: b.node("Einsum", [v, b.weights(4, 4)], equation="nchw,cd->ndwh"),
    "wider": wider,
    "gelu": gelu,
    "hardswish": hardswish,
    "layernorm": layernorm,
    "rows": rows,
}
"""What makes a (1, 4, 6, 6) tensor of one, as exporters write it."""


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_random_networks_keep_their_floats(data):
    """Chains and joins of what exporters write, over (1, 4, 6, 6) tensors."""
    b = Builder(data.draw(st.integers(0, 9)))
    values = ["x"]
    for _ in range(data.draw(st.integers(1, 8))):
        value = data.draw(st.sampled_from(values[-2:]))
        value = data.draw(st.sampled_from(sorted(PIECES)).map(PIECES.__getitem__))(b, value, data, values)
        values.append(value)
    b.node("Tanh", [values[-1]], "y")
    extra = data.draw(st.sampled_from(values[1:]))
    model = b.model(
        {"x": ["n", 4, 6, 6]}, {"y": ["n", 4, 6, 6], extra: ["n", 4, 6, 6]}, opset=data.draw(st.sampled_from([13, 17]))
    )
    cleaned, _, provenance = clean(model, {"x": [1, 4, 6, 6]})
    assert_traced(model, Cleaned(cleaned, [], provenance))
    assert "Constant" not in op_types(cleaned)
    assert all(node.name for node in cleaned.graph.node)
    assert_same_floats(model, cleaned, x=[1, 4, 6, 6])


def test_an_unchanged_model_keeps_its_names():
    model, _, _ = clean(conv_model(), {})
    assert [node.name for node in model.graph.node] == ["conv", "relu"]


def test_open_shapes_that_a_static_model_states_are_closed():
    b = Builder()
    b.node("Reshape", [b.node("Relu", ["x"], "hidden"), b.constant(np.array([2, -1]))], "y")
    model = b.model({"x": [4, 3]}, {"y": ["n", "k"]})
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("hidden", onnx.TensorProto.FLOAT, ["a", "b"]))
    cleaned, _, _ = clean(model, {})
    shapes = value_shapes(cleaned)
    assert (shapes["hidden"], shapes["y"]) == ((4, 3), (2, 6))


def test_branches_come_through_with_static_shapes():
    b = Builder()
    out = [onnx.helper.make_tensor_value_info("o", onnx.TensorProto.FLOAT, [3])]
    yes = onnx.helper.make_graph([onnx.helper.make_node("Add", ["x", "x"], ["o"])], "yes", [], out)
    no = onnx.helper.make_graph([onnx.helper.make_node("Neg", ["x"], ["o"])], "no", [], out)
    condition = b.node("Greater", [b.node("ReduceMax", ["x"], keepdims=0), b.constant(np.float32(0))])
    b.node("If", [condition], "y", then_branch=yes, else_branch=no)
    model = b.model({"x": ["n"]}, {"y": ["n"]}, opset=13)
    cleaned, _, _ = clean(model, {"x": [3]})
    assert value_shapes(cleaned)["y"] == (3,)
    assert_same_floats(model, cleaned, x=[3])
