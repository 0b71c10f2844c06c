"""Memory: its parts, the peak, and what is named where it is too much."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from anfbuild.qnn.features import Features
from anfbuild.simulator.memory import CONSTANTS, heads, long_lived, memory, peak_mb
from anfbuild.simulator.tiling import Flow, Stage, Value, Window, flow


def _flow() -> Flow:
    """x -> a -> b -> c -> y, a read by the last too; b has a head of its own."""
    names = ("x", "va", "vb", "vc", "y", "extra")
    values = {name: Value(name, 1000, 1000 * (index + 1), 8) for index, name in enumerate(names)}
    stages = (
        Stage("a", "Conv", {"x": Window()}, ("va",), 100),
        Stage("b", "Conv", {"va": Window()}, ("vb",), 200),
        Stage("head", "Conv", {"vb": Window()}, ("extra",), 50_000),
        Stage("c", "Conv", {"vb": Window()}, ("vc",), 300),
        Stage("join", "Add", {"vc": Window(), "va": Window()}, ("y",), 0),
    )
    return Flow(stages, values, ("x",), ("y", "extra"), constant_bytes=50_600)


def test_parts_are_those_of_the_model():
    found = memory(_flow(), 7000, None, "sm8650")
    assert (found.weights, found.spill, found.io) == (50_600, 7000, 3000)
    assert found.peak is None
    assert not found.calibrated
    assert set(found.reasons()) == {"/memory_mb/peak"}


def test_the_peak_is_calibrated_where_the_chip_was_measured():
    features = Features(entries=1500)
    process, copies, entry = CONSTANTS["sm8650"]
    found = memory(_flow(), 0, features, "sm8650")
    assert found.peak == pytest.approx((process + copies * 0.0506 + entry * 1.5) * 1e6)
    assert found.calibrated
    assert not memory(_flow(), 0, features, "qcs6490").calibrated
    assert found.reasons() == {}


@given(st.sampled_from([*sorted(CONSTANTS), "another"]), st.floats(0, 500), st.integers(0, 50_000))
def test_more_weights_or_entries_never_take_less(chip: str, weights: float, count: int):
    assert 0 < peak_mb(weights, count, chip) <= peak_mb(weights + 1, count + 1, chip)


def test_what_is_held_longest_comes_first_and_says_from_where_to_where():
    first, *rest = long_lived(_flow())
    assert first.startswith("extra: 0.01 MB held from node head to the end")
    assert any(line.startswith("va: 0.00 MB held from node a to node join, over 4 nodes") for line in rest)
    assert not any(line.startswith("vc:") for line in (first, *rest))


def test_a_head_is_named_with_what_serves_it_alone():
    lines = heads(_flow())
    assert lines[0].startswith("output extra: 1 nodes and 0.06 MB")
    assert "model.outputs" in lines[0]


def test_one_output_is_no_head():
    shape = _flow()
    assert heads(Flow(shape.stages, shape.values, shape.inputs, ("y",))) == []


def test_constants_count_once_as_they_are_stored():
    weights = numpy_helper.from_array(np.zeros((4, 1000), np.int8), "w")
    scale = [numpy_helper.from_array(np.array(1, kind), name) for name, kind in (("s", np.float32), ("z", np.int8))]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", "z"], ["w_dq"], name="dq"),
        helper.make_node("MatMul", ["x", "w_dq"], ["y"], name="product"),
    ]
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)]
        for name, shape in (("x", [2, 4]), ("y", [2, 1000]))
    ]
    graph = helper.make_graph(nodes, "g", *values, [weights, *scale])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    assert flow(model).constant_bytes == 4000 + 2 + 1
