"""Verdicts on a QDQ model, brought back to the source nodes: units, work, and reasons that name the culprit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph.constraints import Placed
from anfbuild.placement import Piece, Row, join, off_htp, pieces, summary
from anfbuild.qnn.compiled import MERGED, UNCLAIMED, Verdict

HTP_TIME = {"total": 3.0, "htp": 3.0, "gpu": None, "cpu": None, "source": "predicted"}


def qdq(*ops: str, first: str = "Conv") -> onnx.ModelProto:
    """x → Q → DQ → first → Q → DQ → ops, each behind a Q and a DQ → y. Nodes are called n0, n1, ..."""
    nodes: list[onnx.NodeProto] = []
    constants = {"s": np.float32(0.1), "z": np.uint8(0), "w": np.ones((3, 3, 3, 3), np.float32)}

    def edge(name: str) -> str:
        nodes.append(helper.make_node("QuantizeLinear", [name, "s", "z"], [f"{name}q"], f"{name}_Q"))
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}q", "s", "z"], [f"{name}f"], f"{name}_DQ"))
        return f"{name}f"

    value = edge("x")
    for index, op in enumerate([first, *ops]):
        extra = {"pads": [1] * 4} if op == "Conv" else {}
        inputs = [value, "w"] if op == "Conv" else [value]
        nodes.append(helper.make_node(op, inputs, [f"t{index}"], f"n{index}", **extra))
        value = edge(f"t{index}")
    nodes[-1].output[0] = "y"
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3, 8, 8]) for name in "xy"]
    graph = helper.make_graph(
        nodes, "g", ends[:1], ends[1:], [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def verdicts(model: onnx.ModelProto, **off: str) -> list[Verdict]:
    """All on the HTP but for `off`: node -> the compiler's words."""
    ends = {"x_Q": "not at an input", model.graph.node[-1].name: "not at an output"}
    off = {**ends, **off}
    return [
        Verdict(n.name, n.op_type, "CPU", None, None, off[n.name])
        if n.name in off
        else Verdict(n.name, n.op_type, "HTP", 0, "Op", "")
        for n in model.graph.node
    ]


def placed(
    model: onnx.ModelProto,
    source: Sequence[tuple[str, str]],
    provenance: Mapping[str, Sequence[str]] | None = None,
    rules: Sequence[Placed] = (),
    costs: Mapping[str, float] | None = None,
    **off: str,
) -> dict[str, Row]:
    rows = join(source, pieces(model, verdicts(model, **off)), provenance or {}, rules, costs or {})
    assert len({row.node for row in rows}) == len(rows)
    return {row.node: row for row in rows}


def test_a_row_for_each_source_node_and_for_each_end() -> None:
    model = qdq("Relu")
    rows = placed(model, [("n0", "Conv"), ("n1", "Relu")], costs={"n0": 2.0})
    assert [(row.node, row.unit, row.compute) for row in rows.values()] == [
        ("n0", "HTP", True),
        ("n1", "HTP", True),
        ("x_Q", "CPU", False),
        ("t1_DQ", "CPU", False),
    ]
    assert (rows["n0"].macs, rows["n0"].ms, rows["n1"].ms) == (8 * 8 * 3 * 3 * 3 * 3, 2.0, None)
    assert "by design" in rows["x_Q"].reason
    assert rows["x_Q"].compiler == "not at an input"
    assert off_htp(list(rows.values())) == []


def test_a_node_is_on_the_cpu_where_any_part_is_and_its_work_counts_once() -> None:
    model = qdq("Erf", "Relu")
    provenance = {"n0": ["norm", "layer"], "n1": ["layer"], "n2": ["layer"]}
    rows = placed(model, [("norm", "BatchNormalization"), ("layer", "LSTM")], provenance, n1="Erf is not supported")
    assert (rows["norm"].unit, rows["norm"].macs) == ("HTP", 0)
    assert (rows["layer"].unit, rows["layer"].macs) == ("CPU", 8 * 8 * 81)
    assert rows["layer"].became == "n0, n1, n2"
    assert rows["layer"].reason.startswith("of the 3 nodes that it became, 1 on the CPU: ")
    assert "Erf, which it became" in rows["layer"].reason
    assert rows["layer"].compiler == "Erf is not supported"
    assert rows["norm"].reason == "its work is done with that of layer"


def test_constants_and_what_no_output_needs_run_nowhere() -> None:
    rules = [
        Placed("c", "Constant", "folded", "it computes a constant"),
        Placed("dead", "Relu", "removed", "no output depends on it"),
        Placed("n0", "Conv", "HTP", ""),
    ]
    source = [("c", "Constant"), ("dead", "Relu"), ("n0", "Conv"), ("lost", "Identity")]
    rows = placed(qdq(), source, {"n0": ["c", "n0"]}, rules)
    assert [(row.unit, row.reason) for row in rows.values()][:4] == [
        ("folded", "it computes a constant"),
        ("removed", "no output depends on it"),
        ("HTP", ""),
        ("removed", "the passes left nothing of it"),
    ]


def test_what_the_build_put_in_is_not_lost() -> None:
    rows = placed(qdq("Erf"), [("n0", "Conv")], n1="Erf is not supported")
    assert rows["n1"].unit == "CPU"
    assert rows["n1"].reason.startswith("put in by the build; the compiler refuses this Erf")
    assert [row.node for row in off_htp(list(rows.values()))] == ["n1"]


def test_the_rules_words_come_first_and_the_compilers_beneath() -> None:
    source = [("n0", "Conv"), ("n1", "Erf")]
    known = placed(qdq("Erf"), source, None, [Placed("n1", "Erf", "CPU", "`Erf` no")], n1="Type `Erf` no.")
    assert known["n1"].reason == "the HTP does not take Erf in this form and precision"
    ranks = placed(qdq("Erf"), source, None, [Placed("n1", "Erf", "CPU", "a value of 6 dimensions")], n1="Rank")
    assert ranks["n1"].reason.endswith("precision: a value of 6 dimensions")
    assert "no rule foresaw it" in placed(qdq("Erf"), source, n1="Type `Erf` no.")["n1"].reason
    wrong = placed(qdq("Erf"), source, None, [Placed("n1", "Erf", "CPU", "never asked")])
    assert wrong["n1"].reason == "the rules expected it on the CPU, and the compiler takes it"


def test_where_a_neighbour_is_the_cause_it_is_named() -> None:
    source = [("start", "Conv"), ("turn", "Transpose"), ("key", "Conv"), ("odd", "Erf")]
    provenance = {"n0": ["start"], "n1": ["turn"], "n2": ["key"], "n3": ["odd"]}
    off = {"n1": f"{MERGED}n2", "n2": UNCLAIMED, "n3": "Erf is not supported"}
    rows = placed(qdq("Transpose", "Conv", "Erf"), source, provenance, **off)
    assert rows["key"].reason.startswith("odd (Erf), which reads it, is on the CPU")
    assert rows["turn"].reason.startswith("odd (Erf), near by, is on the CPU")
    assert rows["turn"].reason.endswith("has become a part of it")
    assert rows["start"].reason == ""


def test_beside_a_heavy_node_that_is_refused_stands_what_is_on_the_cpu_too() -> None:
    source = [("n0", "Relu"), ("n1", "Abs"), ("n2", "Conv")]
    rows = placed(qdq("Abs", "Conv", first="Relu"), source, n1="Rank 6", n2="no such weights")
    assert rows["n2"].reason.endswith("; beside it, on the CPU too: n1 (Abs)")
    assert "beside" not in rows["n1"].reason


def test_a_refusal_that_names_another_node_is_that_ones() -> None:
    rows = placed(qdq("Relu"), [("n0", "Conv"), ("n1", "Relu")], n0="node unit with `n1` refused", n1="Type no")
    assert rows["n0"].reason == "the compiler takes it together with n1 (Relu), which the HTP does not take"


def test_where_a_partition_begins_the_node_that_cuts_it_off_is_named() -> None:
    model = qdq("Erf", "Conv")
    told = [
        Verdict(v.node, v.op_type, v.unit, 1 if v.node == "n2" else v.partition, v.qnn_op, v.reason)
        for v in verdicts(model, n1="Erf is not supported")
    ]
    rows = join([("n0", "Conv"), ("n1", "Erf"), ("n2", "Conv")], pieces(model, told), {}, [], {})
    assert rows[2].reason == "partition 2 of the HTP begins here, behind n1 (Erf), which is on the CPU"


def test_no_reason_is_made_up() -> None:
    rows = placed(qdq("Relu"), [("n0", "Conv"), ("n1", "Relu")], n1=UNCLAIMED)
    assert rows["n1"].reason == "neither the rules nor the compiler give a reason, and no neighbour is on the CPU"


def test_the_compile_of_another_model_is_refused() -> None:
    model = qdq()
    told = verdicts(model)
    model.graph.node[2].name = "renamed"
    with pytest.raises(StepError, match="no verdict") as error:
        pieces(model, told)
    assert error.value.where == "node renamed"


def found(**off: str) -> tuple[list[Row], dict[str, Piece]]:
    model = qdq("Relu", "Conv")
    parts = pieces(model, verdicts(model, **off))
    return join([("n0", "Conv"), ("n1", "Relu"), ("n2", "Conv")], parts, {}, [], {}), parts


def test_the_summary_counts_source_nodes_and_shares_of_work_and_time() -> None:
    assert summary(*found(), 1, HTP_TIME) == {
        **{"nodes": 3, "htp": 3, "gpu": 0, "cpu": 0, "partitions": 1},
        "share": {
            "macs": {"htp": 1.0, "gpu": 0.0, "cpu": 0.0},
            "time": {"htp": 1.0, "gpu": 0.0, "cpu": 0.0},
        },
        "time_source": "predicted",
        "unlisted": [],
        "macs": {"htp": 2 * 8 * 8 * 81, "gpu": 0, "cpu": 0},
        "reasons": {},
    }


def test_a_time_that_is_not_predicted_is_no_share() -> None:
    told = summary(*found(n2="refused"), 2, HTP_TIME)
    assert (told["cpu"], told["unlisted"], told["share"]["macs"]["cpu"]) == (1, ["n2"], 0.5)
    assert told["share"]["time"] == {"htp": None, "gpu": None, "cpu": None}
    assert told["reasons"] == dict.fromkeys(
        ("/share/time", "/time_source"), "what 1 node(s) on the CPU take is not predicted"
    )
    known = summary(*found(n2="refused"), 2, {**HTP_TIME, "cpu": 1.0})
    assert (known["share"]["time"], known["reasons"]) == ({"htp": 0.75, "gpu": 0.0, "cpu": 0.25}, {})
    unknown = summary(*found(), 1, {"reason": "nothing to cost"})
    assert unknown["reasons"]["/share/time"] == "nothing to cost"


def test_no_multiplication_has_no_share() -> None:
    model = qdq(first="Relu")
    parts = pieces(model, verdicts(model))
    told = summary(join([("n0", "Relu")], parts, {}, [], {}), parts, 1, HTP_TIME)
    assert told["share"]["macs"] == {"htp": None, "gpu": None, "cpu": None}
    assert told["reasons"]["/share/macs"] == "the model has no multiplication"
