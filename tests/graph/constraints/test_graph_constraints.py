"""What the rules find, and where nodes are said to run."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, conv_model
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import RecipeError, StepError
from anfbuild.graph import clean
from anfbuild.graph.constraints import (
    FLOAT16,
    RULES,
    Aim,
    Inspection,
    Precision,
    Severity,
    document,
    inspect,
)
from anfbuild.graph.large import structure

INT8 = Precision("int8", 8, 8)
PER_CHANNEL = Precision("int8_per_channel", 8, 8, per_channel=True)
A16W8 = Precision("a16w8", 16, 8)
A16W16 = Precision("a16w16", 16, 16)


def look(model: onnx.ModelProto, precision: Precision = PER_CHANNEL, arch: str = "v75", **more: object) -> Inspection:
    return inspect(model, Aim("chip", arch, 8, arch != "v68", precision), **more)  # type: ignore[arg-type]


def found(result: Inspection, rule: str) -> list[tuple[str | None, str | None]]:
    """The nodes that a rule found, each with what mends it."""
    return [(finding.node, finding.mended_by) for finding in result.findings if finding.rule == rule]


def one(
    op: str, *inputs: str | np.ndarray, shape: tuple[int, ...] = (1, 8, 8, 8), **attributes: object
) -> onnx.ModelProto:
    """x -> the operator, called "n" -> y; arrays are constants."""
    b = Builder()
    names = [name if isinstance(name, str) else b.constant(name) for name in inputs]
    b.node(op, ["x", *names], "y", name="n", **attributes)
    return b.model({"x": shape}, {"y": None})


def test_a_plain_model_has_no_finding_but_the_chain() -> None:
    result = look(conv_model(), A16W8)
    assert [finding.rule for finding in result.findings] == ["longest-chain"]
    assert [(placed.node, placed.unit) for placed in result.placement] == [("conv", "HTP"), ("relu", "HTP")]
    assert not result.failed


@pytest.mark.parametrize(
    ("model", "rule", "mended_by"),
    [
        (one("Erf"), "written-out-gelu", None),
        (one("ReduceProd", axes=[2], keepdims=1), "reduce-prod", "lower_reduce_prod"),
        (one("Einsum", "x", equation="bchw,bchw->bhw"), "einsum", "lower_einsum"),
        (one("Einsum", "x", equation="b...,b...->b"), "einsum", None),
        (one("Atanh"), "cpu-operator", None),
        (one("Resize", "", np.ones(4, np.float32) * 2, mode="linear", antialias=1), "cpu-operator", None),
    ],
)
def test_what_the_htp_lacks_is_found_and_said_to_be_mended_where_a_pass_does(model, rule, mended_by) -> None:
    model.opset_import[0].version = 18 if model.graph.node[0].op_type == "Resize" else 17
    result = look(model)
    assert found(result, rule) == [("n", mended_by)]
    assert result.placement[-1].unit == ("HTP" if mended_by else "CPU")
    assert bool(result.placement[-1].reason)


def test_a_gelu_that_is_written_out_is_fused_and_another_erf_stays() -> None:
    b = Builder()
    scaled = b.node("Div", ["x", b.constant(np.float32(2**0.5))])
    sum_ = b.node("Add", [b.node("Erf", [scaled], name="gelu"), b.constant(np.float32(1))])
    b.node("Erf", [b.node("Mul", ["x", sum_])], "y", name="bare")
    result = look(b.model({"x": [1, 8]}, {"y": [1, 8]}))
    assert found(result, "written-out-gelu") == [("bare", None), ("gelu", "fuse_gelu")]


def test_the_heavy_neighbour_of_a_node_on_the_cpu_is_named() -> None:
    b = Builder()
    b.node("Atanh", [b.node("Conv", ["x", b.weights(4, 8, 1, 1)], name="key")], "y", name="n")
    (finding,) = [f for f in look(b.model({"x": [1, 8, 4, 4]}, {"y": None})).findings if f.rule == "cpu-operator"]
    assert "beside key" in finding.message
    assert "Atanh" in finding.detail  # the compiler's own words


def test_a_transpose_before_a_node_of_the_cpu_stays_on_the_htp() -> None:
    b = Builder()
    b.node("Atanh", [b.node("Transpose", [b.node("Relu", ["x"])], perm=[0, 2, 1], name="t")], "y", name="n")
    placed = {row.node: row.unit for row in look(b.model({"x": [1, 8, 4]}, {"y": None})).placement}
    assert (placed["t"], placed["n"]) == ("HTP", "CPU")


def test_values_of_many_dimensions_are_on_the_cpu() -> None:
    result = look(one("Relu", shape=(1, 2, 2, 2, 2, 2)))
    assert found(result, "cpu-operator") == [("n", None)]
    assert "6 dimensions" in result.placement[0].reason


@pytest.mark.parametrize("domain", ["my.domain", ""])
def test_an_unknown_operator_is_a_finding(domain) -> None:
    b = Builder()
    b.nodes.append(helper.make_node("Frobnicate", ["x"], ["t"], name="odd", domain=domain))
    b.node("Relu", ["t"], "y", name="relu")
    result = look(b.model({"x": [1, 8]}, {"y": [1, 8]}))
    assert found(result, "unknown-operator") == [("odd", None)]
    assert result.failed
    assert [placed.unit for placed in result.placement] == ["CPU", "HTP"]


@pytest.mark.parametrize(
    ("nodes", "outputs", "says"),
    [
        ([("Add", "x", "b", "a"), ("Relu", "a", "b")], ["b"], "reads 'b'"),
        ([("Add", "x", "nowhere", "y")], ["y"], "reads 'nowhere'"),
        ([("Relu", "x", "y"), ("Tanh", "x", "y")], ["y"], "makes 'y'"),
        ([("Relu", "x", "y")], [], "no outputs"),
        ([("Relu", "x", "y")], ["z"], "nothing makes output 'z'"),
    ],
)
def test_what_is_no_graph_is_refused_as_the_build_refuses_it(nodes, outputs, says) -> None:
    b = Builder()
    for op_type, *reads, makes in nodes:
        b.nodes.append(helper.make_node(op_type, reads, [makes], name=makes))
    with pytest.raises(StepError, match=says):
        look(b.model({"x": [1, 8]}, {name: [1, 8] for name in outputs}))


@pytest.mark.parametrize(
    ("op_type", "inputs", "attributes"),
    [
        ("MaxPool", ["x"], {}),
        ("Conv", ["x", ""], {}),
        ("LayerNormalization", ["x"], {}),
        ("Relu", ["x"], {"colour": 3}),
        ("Softmax", ["x"], {"axis": 1.5}),
    ],
)
def test_a_node_that_its_operator_does_not_allow_is_a_finding(op_type, inputs, attributes) -> None:
    b = Builder()
    b.nodes.append(helper.make_node(op_type, inputs, ["y"], name="n", **attributes))
    model = b.model({"x": [1, 8, 8, 8]}, {"y": [1, 8, 8, 8]})
    assert found(look(model), "invalid-node") == [("n", None)]
    with pytest.raises(StepError):
        clean(model, {})


def test_an_opset_that_is_too_new_is_a_finding() -> None:
    model = one("Relu")
    assert found(look(model), "new-opset") == []
    model.opset_import[0].version = 99
    result = look(model)
    assert found(result, "new-opset") == [(None, None)]
    assert result.failed
    with pytest.raises(StepError, match="opset 99"):
        clean(model, {})


def test_local_functions_are_written_out() -> None:
    body = helper.make_function(
        "mine", "Twice", ["a"], ["c"], [helper.make_node("Add", ["a", "a"], ["c"])], [helper.make_opsetid("", 17)]
    )
    b = Builder()
    b.nodes.append(helper.make_node("Twice", ["x"], ["y"], domain="mine"))
    model = b.model({"x": [1, 8]}, {"y": [1, 8]})
    model.functions.append(body)
    model.opset_import.append(helper.make_opsetid("mine", 1))
    assert [(placed.op_type, placed.unit) for placed in look(model).placement] == [("Add", "HTP")]


def test_weights_may_be_missing_in_any_way() -> None:
    model = conv_model()
    expected = look(model)
    for strip in (
        lambda tensor: tensor.ClearField("raw_data"),
        lambda tensor: tensor.external_data.add(key="location", value="gone.bin"),
    ):
        stripped = conv_model()
        for tensor in stripped.graph.initializer:
            strip(tensor)
            if tensor.external_data:
                tensor.ClearField("raw_data")
                tensor.data_location = TensorProto.EXTERNAL
        result = look(stripped)
        assert (result.findings, result.placement) == (expected.findings, expected.placement)


@pytest.mark.parametrize("as_node", [False, True])
def test_without_its_weights_a_model_is_placed_the_same(as_node: bool) -> None:
    """Of the tables of a text model, positions are counted as sizes are; words and weights are no matter."""
    b = Builder()
    zero, one, table = b.constant(np.array([0])), b.constant(np.array([1])), np.arange(512).reshape(1, -1)
    value = b.node("Constant", [], value=numpy_helper.from_array(table)) if as_node else b.constant(table)
    length = b.node("Gather", [b.node("Shape", ["x"]), one])
    rows = b.node("Gather", [b.weights(512, 16), b.node("Slice", [value, zero, length, one])])
    total = b.node("Add", ["x", rows])
    count = b.node("Gather", [b.node("Shape", [total]), one])
    b.node("Reshape", [total, b.node("Concat", [one, count, b.constant(np.array([-1]))], axis=0)], "y")
    model = b.model({"x": [1, "tokens", 16]}, {"y": None})
    whole, bare = (look(given, shapes={"x": [1, 64, 16]}) for given in (model, structure(model)))
    assert {placed.unit for placed in whole.placement} == {"folded", "HTP"}
    assert bare.placement == whole.placement
    assert bare.findings == whole.findings


def test_sizes_that_the_graph_computes_are_followed() -> None:
    b = Builder()
    size = b.node("Gather", [b.node("Shape", ["x"]), b.constant(np.array(0))], axis=0)
    target = b.node(
        "Concat", [b.node("Unsqueeze", [size, b.constant(np.array([0]))]), b.constant(np.array([-1]))], axis=0
    )
    b.node("Reshape", ["x", target], "y", name="reshape")
    result = look(b.model({"x": ["n", 2, 4]}, {"y": None}), shapes={"x": [3, 2, 4]})
    assert [finding.rule for finding in result.findings if finding.severity is Severity.ERROR] == []
    assert {placed.node: placed.unit for placed in result.placement}["reshape"] == "HTP"
    assert [placed.unit for placed in result.placement].count("folded") == 4


def test_a_table_whose_rows_the_graph_counts_has_a_size() -> None:
    b = Builder()
    length = b.node("Gather", [b.node("Shape", ["x"]), b.constant(np.array(1))])
    rows = b.node("Range", [b.constant(np.int64(0)), length, b.constant(np.int64(1))])
    read = b.node("Gather", [b.weights(600, 8), rows], name="table")
    b.node("Add", [b.node("Unsqueeze", ["x", b.constant(np.array([2]))]), read], "y", name="sum")
    result = look(b.model({"x": ["n", "length"]}, {"y": None}), shapes={"x": [1, 6]})
    assert not result.failed
    assert {placed.node: placed.unit for placed in result.placement if placed.node in ("table", "sum")} == {
        "table": "folded",
        "sum": "HTP",
    }


@pytest.mark.parametrize("op_type", ["Div", "Mod"])
def test_a_division_without_a_result_is_a_finding(op_type) -> None:
    b = Builder()
    size = b.node("Gather", [b.node("Shape", ["x"]), b.constant(np.array([0]))])
    nothing = b.node("Sub", [size, size])
    b.node("Reshape", ["x", b.node(op_type, [size, nothing], name="n")], "y")
    (finding,) = [entry for entry in look(b.model({"x": [4]}, {"y": None})).findings if entry.severity.value == "error"]
    assert "divided by 0" in finding.detail


def test_a_constant_that_is_an_output_or_too_large_stays_computed() -> None:
    b = Builder()
    b.node("Relu", [b.weights(2, 2)], "out", name="output")
    b.node("Add", ["x", b.node("Expand", [b.weights(1, 1), b.constant(np.array([2**13, 2**13]))], name="grows")], "y")
    placed = {row.node: row.unit for row in look(b.model({"x": [1, 1]}, {"y": None, "out": None})).placement}
    assert (placed["output"], placed["grows"]) == ("HTP", "HTP")


@pytest.mark.parametrize("op_type", ["ConstantOfShape", "Expand", "Tile"])
def test_a_few_numbers_that_ask_for_gigabytes_are_not_computed(op_type) -> None:
    b = Builder()
    sizes = b.node("Mul", [b.constant(np.array([2**17, 2**17])), b.constant(np.array([1, 1]))])
    one_ = b.constant(np.ones((1, 1), np.int64))
    inputs = [sizes] if op_type == "ConstantOfShape" else [one_, sizes]
    b.node("Add", ["x", b.node("Cast", [b.node(op_type, inputs)], to=TensorProto.FLOAT)], "y")
    assert look(b.model({"x": [1, 1]}, {"y": None})).placement[-1].unit == "HTP"


def test_a_size_that_depends_on_values_is_an_error() -> None:
    b = Builder()
    b.node("Cast", [b.node("NonZero", ["x"], name="n")], "y", to=TensorProto.FLOAT)
    assert found(look(b.model({"x": [2, 8]}, {"y": None})), "dynamic-value") == [("n", None)]


def test_a_chain_that_only_reorders_names_what_it_lies_between() -> None:
    b = Builder()
    value = b.node("Conv", ["x", b.weights(8, 8, 1, 1)], name="before")
    value = b.node("Reshape", [value, b.constant(np.array([1, 2, 4, 16]))], name="r1")
    value = b.node("Transpose", [value], perm=[0, 2, 1, 3], name="t")
    value = b.node("Reshape", [value, b.constant(np.array([1, 8, 4, 4]))], name="r2")
    b.node("Conv", [value, b.weights(8, 8, 1, 1)], "y", name="after")
    (finding,) = [f for f in look(b.model({"x": [1, 8, 4, 4]}, {"y": None})).findings if f.rule == "layout-chain"]
    assert finding.node == "r1"
    assert "r1, t, r2" in finding.detail
    assert "between before and after" in finding.detail


@pytest.mark.parametrize(("precision", "nodes"), [(INT8, []), (A16W8, [("conv", None), ("relu", None)])])
def test_an_activation_is_compared_with_the_vtcm_at_its_width(precision, nodes) -> None:
    model = conv_model(height=3 * 2**16)  # 4 x 3 x 2^16 x 8 values
    assert found(look(model, precision), "activation-over-vtcm") == nodes


def test_the_longest_chain_counts_what_is_handed_on() -> None:
    (finding,) = [finding for finding in look(conv_model()).findings if finding.rule == "longest-chain"]
    assert finding.node == "relu"
    assert "2 nodes, from conv to relu" in finding.detail


def test_dead_nodes_and_heads_are_told() -> None:
    b = Builder()
    b.node("Relu", ["x"], "y", name="relu")
    b.node("Sigmoid", ["y"], "head", name="spare")
    b.node("Tanh", ["x"], name="dead")
    model = b.model({"x": [1, 8]}, {"y": [1, 8], "head": [1, 8]})
    assert found(look(model), "spare-output") == [("relu", None)]
    assert found(look(model), "dead-nodes") == [(None, "remove_dead")]
    cut = look(model, outputs=["y"])
    assert [placed.unit for placed in cut.placement] == ["HTP", "removed", "removed"]
    assert found(cut, "spare-output") == []


def test_batchnorm_in_training_mode_stays() -> None:
    b = Builder()
    parameters = [b.positive(8) for _ in range(4)]
    b.nodes.append(
        helper.make_node("BatchNormalization", ["x", *parameters], ["y", "m", "v"], name="n", training_mode=1)
    )
    assert found(look(b.model({"x": [1, 8, 4, 4]}, {"y": None})), "unfolded-batchnorm") == [("n", None)]
    b = Builder()
    b.batchnorm("x", 8, "y", name="n")
    assert found(look(b.model({"x": [1, 8, 4, 4]}, {"y": None})), "unfolded-batchnorm") == [("n", "fold_affine")]


def test_a_loop_without_fixed_turns_is_an_error() -> None:
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Relu", ["v"], ["r"])],
        "body",
        [helper.make_tensor_value_info(n, k, s) for n, k, s in (("i", 7, []), ("go", 9, []), ("v", 1, [1, 8]))],
        [helper.make_tensor_value_info("on", 9, []), helper.make_tensor_value_info("r", 1, [1, 8])],
    )
    b = Builder()
    b.node("Loop", ["", b.constant(np.array(True)), "x"], "y", name="n", body=body)
    assert found(look(b.model({"x": [1, 8]}, {"y": [1, 8]})), "unbounded-loop") == [("n", None)]


def test_a_mask_of_the_least_float_is_told() -> None:
    assert found(look(one("Add", np.full(8, -3.4e38, np.float32))), "unbounded-range") == [("n", None)]
    assert found(look(one("Add", np.full(8, -50, np.float32))), "unbounded-range") == []


@pytest.mark.parametrize(("value", "is_found"), [(-9000.0, True), (-8999.0, False)])
def test_a_mask_begins_where_clamp_masks_says(value, is_found) -> None:
    model = one("Add", np.float32(value))
    assert bool(found(look(model), "unbounded-range")) == is_found


def test_a_mask_that_a_softmax_alone_reads_is_clamped_by_the_build() -> None:
    for outputs, mended in ((["y"], "clamp_masks"), (["y", "s"], None)):
        b = Builder()
        b.node("Add", ["x", b.constant(np.full(8, -3.4e38, np.float32))], "s", name="n")
        b.node("Softmax", ["s"], "y", name="m", axis=-1)
        model = b.model({"x": [1, 8]}, {name: [1, 8] for name in outputs})
        assert found(look(model), "unbounded-range") == [("n", mended)]


def test_what_is_coarse_in_16_bits_is_told() -> None:
    assert found(look(one("MatMul", "x"), A16W8), "coarse-in-16-bits") == [("n", None)]
    assert found(look(one("MatMul", "x")), "coarse-in-16-bits") == []
    assert found(look(one("MatMul", np.ones((8, 8), np.float32)), A16W8), "coarse-in-16-bits") == []


CONV = np.ones((8, 8, 3, 3), np.float32)
DEPTHWISE = np.ones((8, 1, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("model", "precision", "rule", "is_found"),
    [
        (one("HardSigmoid"), A16W8, "wrong-in-16-bits", True),
        (one("HardSigmoid"), INT8, "wrong-in-16-bits", False),
        (one("ScatterElements", np.zeros((1, 8, 8, 1), np.int64), np.ones((1, 8, 8, 1), np.float32)), INT8,
         "scattered-elements", True),
        (one("RandomNormalLike"), INT8, "random-values", True),
        (one("Floor"), INT8, "steep-function", True),
        (one("GridSample", np.zeros((1, 4, 4, 2), np.float32), mode="nearest"), INT8, "steep-function", True),
        (one("GridSample", np.zeros((1, 4, 4, 2), np.float32), mode="linear"), INT8, "steep-function", False),
        (one("LpPool", kernel_shape=[2, 2], pads=[1] * 4), INT8, "padded-pool", True),
        (one("LpPool", kernel_shape=[2, 2]), INT8, "padded-pool", False),
        (one("AveragePool", kernel_shape=[3, 3], pads=[1] * 4), INT8, "padded-pool", False),
        (one("AveragePool", kernel_shape=[3, 3], pads=[1, 1, 0, 0]), INT8, "padded-pool", True),
        (one("AveragePool", kernel_shape=[3, 3], auto_pad="SAME_UPPER"), INT8, "padded-pool", True),
        (one("AveragePool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), INT8, "padded-pool", True),
        (one("AveragePool", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1), INT8, "padded-pool", False),
        (one("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1), INT8, "padded-pool", False),
        (one("MaxPool", kernel_shape=[2, 2], strides=[3, 3], pads=[0, 0, 1, 1], ceil_mode=1), INT8, "padded-pool",
         True),
        (one("Conv", CONV, dilations=[2, 2], strides=[2, 2]), A16W8, "dilated-stride", True),
        (one("Conv", CONV, dilations=[2, 2], strides=[2, 2]), INT8, "dilated-stride", False),
        (one("Conv", DEPTHWISE, dilations=[2, 2], strides=[2, 2], group=8), A16W8, "dilated-stride", False),
        (one("Conv", DEPTHWISE, dilations=[3, 3], strides=[2, 2], group=8), INT8, "dilated-stride", True),
        (one("Conv", DEPTHWISE, dilations=[3, 3], group=8), INT8, "dilated-stride", False),
    ],
)  # fmt: skip
def test_what_the_emulator_showed_is_found(model, precision, rule, is_found) -> None:
    """See benchmarks/exactness.py."""
    assert found(look(model, precision), rule) == ([("n", None)] if is_found else [])


def test_a_float16_model_and_one_that_is_quantized_are_errors() -> None:
    b = Builder()
    b.node("Relu", ["x"], "y", name="n")
    half = b.model({"x": [1, 8]}, {"y": None}, kind=TensorProto.FLOAT16)
    assert found(look(half), "other-float") == [(None, None)]
    b = Builder()
    b.node("QuantizeLinear", ["x", b.constant(np.float32(1)), b.constant(np.uint8(0))], "y", name="q")
    assert found(look(b.model({"x": [1, 8]}, {"y": None})), "quantized-already") == [("q", None)]


def test_half_precision_needs_a_chip_that_has_it() -> None:
    assert found(look(conv_model(), FLOAT16, "v68"), "missing-fp16") == [(None, None)]
    assert not look(conv_model(), FLOAT16, "v75").failed


def test_shapes_and_outputs_that_do_not_fit_are_refused() -> None:
    for more, says in (
        ({"shapes": {"z": [1]}}, "no input 'z'"),
        ({"shapes": {"x": [1, 3, 9, 9]}}, "the model fixes it at 8"),
        ({"shapes": {"x": [1, 3]}}, "Give 4 sizes"),
        ({"shapes": {"x": [1, 3, 8, 0]}}, "a size below 1"),
        ({"outputs": ["z"]}, "no output 'z'"),
    ):
        with pytest.raises(RecipeError, match=says):
            look(conv_model(), **more)


def test_a_contradiction_of_shapes_is_a_finding() -> None:
    b = Builder()
    b.node("Add", ["x", b.weights(3)], "y", name="n")
    assert [f.rule for f in look(b.model({"x": [1, 8]}, {"y": None})).findings][:1] == ["contradicting-shapes"]


@pytest.mark.parametrize("times", [0, 10**5])
def test_a_value_without_elements_or_without_bounds_is_a_finding(times) -> None:
    b = Builder()
    b.node("Tile", ["x", b.constant(np.array([times, times]))], "y", name="n")
    assert found(look(b.model({"x": [1, 8]}, {"y": [None, None]})), "unsound-size") == [("n", None)]


def test_every_rule_has_its_texts_and_the_page_names_it() -> None:
    page = document()
    for name, entry in RULES.items():
        assert entry.message.endswith("."), name
        assert all((entry.consequence, entry.remedy)), name
        assert f"`{name}`" in page
        assert "{" not in entry.message + entry.consequence + entry.remedy, name


def quantized_model() -> onnx.ModelProto:
    """x -> Q, DQ -> Conv of weights per channel, out of int8 -> Q, DQ -> y; 16-bit activations."""
    b = Builder()

    def encoded(value: str, output: str | None = None) -> str:
        step = [b.constant(np.float32(0.01)), b.constant(np.uint16(100))]
        return b.node("DequantizeLinear", [b.node("QuantizeLinear", [value, *step]), *step], output)

    scales = [b.constant(np.full(4, 0.01, np.float32)), b.constant(np.zeros(4, np.int8))]
    weights = b.node("DequantizeLinear", [b.constant(np.ones((4, 3, 1, 1), np.int8)), *scales], axis=0)
    encoded(b.node("Conv", [encoded("x"), weights], name="conv"), "y")
    return b.model({"x": [1, 3, 8, 8]}, {"y": None}, opset=21, ir=10)


def test_a_quantized_model_runs_where_its_encodings_let_it() -> None:
    result = look(quantized_model(), Precision("as_is", 16, 8, per_channel=True, as_is=True))
    assert not result.failed
    assert "conv" in {placed.node for placed in result.placement if placed.unit == "HTP"}
    assert "CPU" not in {placed.unit for placed in result.placement}


def test_a_quantized_model_is_an_error_for_a_quantizer() -> None:
    (finding,) = [entry for entry in look(quantized_model()).findings if entry.rule == "quantized-already"]
    assert "quantization=as_is" in finding.remedy


def test_what_the_quantizer_would_mend_stays_where_encodings_are_kept() -> None:
    b = Builder()
    b.node("LayerNormalization", ["x", b.positive(8), b.weights(8)], "y", name="n")
    model = b.model({"x": [1, 3, 8]}, {"y": None})
    kept = Precision("as_is", 8, 8, per_channel=True, as_is=True)
    assert found(look(model), "layernorm-scale") == [("n", "quantize")]
    assert found(look(model, kept), "layernorm-scale") == [("n", None)]
