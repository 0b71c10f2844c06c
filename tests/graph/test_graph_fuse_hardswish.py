"""A hard swish that is written out becomes one node; what only looks like one stays."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, op_types

from anfbuild.graph.passes import fuse_hardswish


def written_out(
    *, shift=3.0, low=0.0, high=6.0, divisor=6.0, last="Div", swap=False, other=None, outputs=("y",), rank=0
):
    """x (2, 3) -> Add - Clip - Mul - Div (or Mul), with these constants; `other` replaces the x that is multiplied."""
    b = Builder()

    def scalar(value):
        return b.constant(np.full((1,) * rank, value, np.float32))

    source = b.node("Relu", ["x"], "source") if other else "x"
    shifted = b.node("Add", [source, scalar(shift)][:: -1 if swap else 1])
    clipped = b.node("Clip", [shifted, b.constant(np.float32(low)), b.constant(np.float32(high))], "clipped")
    product = b.node("Mul", [other or "x", clipped][:: -1 if swap else 1])
    b.node(last, [product, scalar(divisor)], "y", name="last")
    return b.model({"x": [2, 3]}, dict.fromkeys(outputs))


@pytest.mark.parametrize(
    "model",
    [
        written_out(),
        written_out(swap=True),
        written_out(rank=1),
        written_out(last="Mul", divisor=1 / 6),
    ],
)
def test_a_chain_becomes_one_node_of_its_last_name(model):
    before = onnx.ModelProto.FromString(model.SerializeToString())
    assert fuse_hardswish.run(model).changed == 1
    assert op_types(model) == ["HardSwish"]
    assert model.graph.node[0].name == "last"
    assert_same_floats(before, model, x=[2, 3])


@pytest.mark.parametrize(
    "model",
    [
        written_out(shift=2.5),
        written_out(low=-1.0),
        written_out(high=5.0),
        written_out(divisor=3.0),
        written_out(last="Mul"),
        written_out(other="x"),
        written_out(outputs=("y", "clipped")),
        written_out(rank=3),
    ],
)
def test_anything_else_stays(model):
    before = onnx.ModelProto.FromString(model.SerializeToString())
    assert fuse_hardswish.run(model).changed == 0
    assert model == before


def test_every_chain_of_a_network_is_fused():
    b = Builder()
    value = "x"
    for number in range(3):
        shifted = b.node("Add", [value, b.constant(np.float32(3))])
        clipped = b.node("Clip", [shifted, b.constant(np.float32(0)), b.constant(np.float32(6))])
        value = b.node("Div", [b.node("Mul", [value, clipped]), b.constant(np.float32(6))], f"y{number}")
    model = b.model({"x": [2, 3]}, {"y2": None})
    before = onnx.ModelProto.FromString(model.SerializeToString())
    assert fuse_hardswish.run(model).changed == 3
    assert op_types(model) == ["HardSwish"] * 3
    assert_same_floats(before, model, x=[2, 3])
