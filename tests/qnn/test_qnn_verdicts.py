from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anfbuild.qnn.logs import BuildLog, Validation
from anfbuild.qnn.options import PROVIDER
from anfbuild.qnn.trace import Trace
from anfbuild.qnn.verdicts import Group, join, partitions

HOST = "CPUExecutionProvider"


@pytest.fixture
def model() -> onnx.ModelProto:
    """x → ident → mm → add → relu → erf → scale → y, where scale multiplies with a folded constant."""
    nodes = [
        helper.make_node("Identity", ["x"], ["i"], name="ident"),
        helper.make_node("MatMul", ["i", "w"], ["m"], name="mm"),
        helper.make_node("Add", ["m", "c"], ["a"], name="add"),
        helper.make_node("Relu", ["a"], ["r"], name="relu"),
        helper.make_node("Erf", ["r"], ["e"], name="erf"),
        helper.make_node("Mul", ["c", "c"], ["cc"], name="square"),
        helper.make_node("Mul", ["e", "cc"], ["y"], name="scale"),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in "xy"]
    constants = [helper.make_tensor("w", TensorProto.FLOAT, [2, 2], [1.0] * 4)]
    constants.append(numpy_helper.from_array(numpy_helper.to_array(constants[0]), "c"))
    return helper.make_model(helper.make_graph(nodes, "g", values[:1], values[1:], constants))


def test_each_node_gets_one_verdict_whatever_its_name_became(model: onnx.ModelProto) -> None:
    groups = [
        Group(PROVIDER, (("Transpose_token_3", "Transpose"), ("mm/MatMulAddFusion", "Gemm"), ("relu_token_7", "Relu"))),
        Group(HOST, (("erf", "Erf"),)),
        Group(PROVIDER, (("scale_token_1_token_22", "Mul"),)),
    ]
    trace = Trace(
        {"mm/MatMulAddFusion": "FullyConnected", "relu_token_7": "Relu", "scale_token_1_token_22": "ElementWiseBinary"},
        {"erf": "not supported"},
    )
    got = {verdict.node: verdict for verdict in join(model, groups, trace, BuildLog(), [])}
    assert list(got) == [node.name for node in model.graph.node]
    assert {name: (v.unit, v.partition, v.qnn_op) for name, v in got.items()} == {
        "ident": ("HTP", 0, "FullyConnected"),
        "mm": ("HTP", 0, "FullyConnected"),
        "add": ("HTP", 0, "Relu"),
        "relu": ("HTP", 0, "Relu"),
        "erf": ("CPU", None, None),
        "square": ("folded", None, None),
        "scale": ("HTP", 1, "ElementWiseBinary"),
    }
    assert got["erf"].reason == "not supported"
    assert "mm" in got["ident"].reason
    assert partitions(groups) == 2


def test_the_logs_reason_with_qnns_words_comes_before_the_traces(model: onnx.ModelProto) -> None:
    log = BuildLog(validations={"erf_token_1": Validation("Erf", False, "expected >= 73")})
    groups = [Group(HOST, (("erf_token_1", "Erf"),))]
    got = {v.node: v for v in join(model, groups, Trace({}, {"erf_token_1": "Failed to add node."}), log, [])}
    assert got["erf"].reason == "expected >= 73"


def test_a_node_under_its_own_name_beats_one_that_was_put_in(model: onnx.ModelProto) -> None:
    groups = [Group(PROVIDER, (("relu", "Relu"),)), Group(HOST, (("relu_token_9", "Relu"),))]
    got = {v.node: v for v in join(model, groups, Trace({}, {}), BuildLog(), [])}
    assert got["relu"].unit == "HTP"


def test_a_node_that_was_split_over_both_units_counts_as_cpu(model: onnx.ModelProto) -> None:
    groups = [Group(PROVIDER, (("relu_token_8", "Relu"),)), Group(HOST, (("relu_token_9", "Relu"),))]
    got = {v.node: v for v in join(model, groups, Trace({}, {}), BuildLog(), [])}
    assert got["relu"].unit == "CPU"


def test_a_node_that_nobody_saw_is_not_counted_for_the_htp(model: onnx.ModelProto) -> None:
    got = {v.node: v for v in join(model, [], Trace({}, {}), BuildLog(), [])}
    assert {v.unit for name, v in got.items() if name != "square"} == {"CPU"}


@pytest.mark.parametrize(
    ("put_in", "unit"), [((), "HTP"), ((("Add_token_4", "Add"),), "HTP"), ((("Add", "Add"),), "CPU")]
)
def test_a_node_that_is_gone_between_htp_and_cpu_is_not_the_cpus(
    model: onnx.ModelProto, put_in: tuple[tuple[str, str], ...], unit: str
) -> None:
    """`add` is in no group, `mm` before it is on the HTP and `relu` behind it on the CPU."""
    layout = Group(PROVIDER, put_in) if put_in and put_in[0][0] != "Add" else Group(HOST, put_in)
    groups = [Group(PROVIDER, (("mm", "MatMul"),)), Group(HOST, (("relu", "Relu"), ("erf", "Erf"))), layout]
    got = {v.node: v for v in join(model, groups, Trace({}, {}), BuildLog(), [])}
    assert (got["add"].unit, got["add"].merged) == (unit, True)
    assert got["relu"].unit == "CPU"


def test_a_transpose_that_is_gone_is_the_cpus_only_where_one_was_put_in_there(model: onnx.ModelProto) -> None:
    model.graph.node[2].op_type, model.graph.node[2].input[:] = "Transpose", ["m"]
    on_cpu = Group(HOST, (("mm", "MatMul"), ("relu", "Relu"), ("erf", "Erf")))
    for put_in, unit in ((PROVIDER, "HTP"), (HOST, "CPU")):
        groups = [on_cpu, Group(PROVIDER, (("scale", "Mul"),)), Group(put_in, (("Transpose", "Transpose"),))]
        got = {v.node: v.unit for v in join(model, groups, Trace({}, {}), BuildLog(), [])}
        assert got["add"] == unit


def test_only_a_node_that_the_compiler_gives_a_reason_for_is_refused(model: onnx.ModelProto) -> None:
    groups = [Group(HOST, (("relu", "Relu"), ("erf", "Erf")))]
    got = {v.node: v for v in join(model, groups, Trace({}, {"erf": "not supported"}), BuildLog(), [])}
    assert {name for name, v in got.items() if v.refused} == {"erf"}
    assert {name for name, v in got.items() if v.merged} >= {"add", "scale"}
