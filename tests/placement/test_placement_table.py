from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.placement import COLUMNS, Row, summary, table, write_csv
from anfbuild.qnn.compiled import Compiled, Unit, Verdict


def model() -> onnx.ModelProto:
    """x → Q → DQ → Conv → Relu → Q → DQ → y; the weight of 4x3x3x3 is dequantized from a constant."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"], name="x_Q"),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xf"], name="x_DQ"),
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["wf"], name="w_DQ"),
        helper.make_node("Conv", ["xf", "wf"], ["c"], name="conv", pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["r"], name="relu"),
        helper.make_node("QuantizeLinear", ["r", "s", "z"], ["rq"], name="r_Q"),
        helper.make_node("DequantizeLinear", ["rq", "s", "z"], ["y"], name="r_DQ"),
    ]
    constants = {"s": np.float32(0.1), "z": np.uint8(0), "w": np.ones((4, 3, 3, 3), np.uint8)}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4, 8, 8])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def compiled(**units: Unit) -> Compiled:
    verdicts = [
        Verdict(node.name, node.op_type, units.get(node.name, "HTP"), 0, None, "why" if node.name in units else "")
        for node in model().graph.node
    ]
    return Compiled(57, "SM8650", "v75", 8, "2.51.0", "v2.51.0.1", 1, {}, None, "none", {}, {}, tuple(verdicts))


def test_rows_are_the_compute_nodes_and_the_graphs_own_q_and_dq() -> None:
    rows = table(model(), compiled(x_Q="CPU", relu="CPU"))
    assert [(row.node, row.unit, row.compute) for row in rows] == [
        ("x_Q", "CPU", False),
        ("conv", "HTP", True),
        ("relu", "CPU", True),
        ("r_DQ", "HTP", False),
    ]
    assert rows[1].macs == 8 * 8 * 4 * 3 * 3 * 3
    assert rows[2].reason == "why"


SHARE_HTP = {"macs": {"htp": 1.0, "gpu": 0.0, "cpu": 0.0}}
NO_SHARE = {"macs": {"htp": None, "gpu": None, "cpu": None}}


def test_the_summary_counts_compute_nodes_and_the_share_of_the_work() -> None:
    rows = table(model(), compiled(x_Q="CPU", relu="CPU"))
    assert summary(rows, 1) == {"nodes": 2, "htp": 1, "gpu": 0, "cpu": 1, "partitions": 1, "share": SHARE_HTP}
    assert summary(table(model(), compiled(conv="CPU")), 1)["share"] == {"macs": {"htp": 0.0, "gpu": 0.0, "cpu": 1.0}}


def test_a_folded_node_is_no_work_and_no_work_has_no_share() -> None:
    rows = [Row("a", "Relu", "HTP", 0, ""), Row("b", "Mul", "folded", 0, "computes a constant")]
    assert summary(rows, 1) == {"nodes": 1, "htp": 1, "gpu": 0, "cpu": 0, "partitions": 1, "share": NO_SHARE}


def test_the_compile_of_another_model_is_refused() -> None:
    other = model()
    other.graph.node[3].name = "renamed"
    with pytest.raises(StepError, match="no verdict") as error:
        table(other, compiled())
    assert error.value.where == "node renamed"


@given(name=st.text(st.characters(codec="utf-8"), max_size=12), start=st.sampled_from(["=", "+", "-", "@", "\t", ""]))
def test_any_name_survives_the_csv_and_none_is_a_formula(
    tmp_path_factory: pytest.TempPathFactory, name: str, start: str
) -> None:
    path = tmp_path_factory.mktemp("csv") / "placement.csv"
    write_csv([Row(start + name, "Relu", "HTP", 3, 'a "reason", with\nlines')], path)
    with path.open(encoding="utf-8", newline="") as file:
        header, row = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert row[0].removeprefix("'") == (start + name).removeprefix("'")
    assert not row[0].startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert row[1:] == ["Relu", "HTP", "3", 'a "reason", with\nlines']


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    rows = table(model(), compiled())
    for name in ("a", "b"):
        write_csv(rows, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert b"\r" not in (tmp_path / "a").read_bytes()
