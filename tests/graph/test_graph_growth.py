"""A few numbers that ask for a row of gigabytes are refused by the node that makes it, at no cost in memory."""

from __future__ import annotations

import numpy as np
import pytest
from graph_models import Builder
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph import clean
from anfbuild.graph.computed_shapes import resolve
from anfbuild.graph.growth import LONGEST

HUGE = 10**12

# Each makes a value `row` at a node `grows`.


def constant_range(b):
    b.node("Range", [b.constant(np.int64(n)) for n in (0, HUGE, 1)], "row", name="grows")


def filled(b):
    b.node("ConstantOfShape", [b.node("Mul", [b.constant(np.array([10**6])), b.constant(np.array([10**6]))])], "row")
    b.nodes[-1].name = "grows"


def filled_by_the_size_of_an_input(b):
    size = b.node("Slice", [b.node("Shape", ["x"]), b.constant([1]), b.constant([2])])
    size = b.node("Unsqueeze", [b.node("Squeeze", [size]), b.constant([0])])
    size = b.node("Concat", [b.node("Mul", [size, b.node("Cast", [b.constant([HUGE])], to=TensorProto.INT64)])], axis=0)
    b.node("ConstantOfShape", [b.node("Add", [size, b.constant([1])])], "row", name="grows")


def expanded(b):
    b.node("Expand", [b.constant([1]), b.node("Gather", [b.constant([1, HUGE]), b.constant([1])])], "row", name="grows")


def tiled(b):
    b.node("Tile", [b.constant([1]), b.constant([HUGE])], "row", name="grows")


def padded(b):
    b.node("Pad", [b.constant([1]), b.constant([0, HUGE])], "row", name="grows")


def flattened(b):
    b.node("ConstantOfShape", [b.constant([10**6, 10**6])], "plane")
    b.node("Reshape", ["plane", b.node("Sub", [b.constant([1]), b.constant([2])])], "row", name="grows")


CASES = [constant_range, filled, filled_by_the_size_of_an_input, expanded, tiled, padded, flattened]


def growing(make):
    b = Builder()
    make(b)
    last = b.node("ReduceSum", [b.node("Cast", ["row"], to=TensorProto.FLOAT)], keepdims=0)
    b.node("Add", ["x", last], "y")
    return b.model({"x": [1, 4]}, {"y": [1, 4]})


@pytest.mark.parametrize("work", ["clean", "lint"])
@pytest.mark.parametrize("make", CASES)
def test_a_row_of_gigabytes_is_refused_by_name(make, work):
    model = growing(make)
    with pytest.raises(StepError, match="row") as caught:
        clean(model, {}) if work == "clean" else resolve(model)
    assert caught.value.where.startswith("node grows (")
    assert "smaller" in caught.value.remedy


def test_one_in_a_branch_is_refused_too():
    row = helper.make_tensor_value_info("f", TensorProto.FLOAT, None)
    branch = helper.make_graph(
        [
            helper.make_node("Constant", [], ["most"], value=numpy_helper.from_array(np.array([HUGE]))),
            helper.make_node("ConstantOfShape", ["most"], ["row"], name="grows"),
            helper.make_node("Cast", ["row"], ["f"], to=TensorProto.FLOAT),
        ],
        "branch",
        [],
        [row],
    )
    b = Builder()
    asked = b.node("Cast", [b.node("ReduceMax", ["x"], keepdims=0)], to=TensorProto.BOOL)
    b.node("If", [asked], "y", then_branch=branch, else_branch=branch)
    with pytest.raises(StepError, match="row"):
        clean(b.model({"x": [1, 4]}, {"y": None}), {})


def test_an_input_of_one_long_row_is_refused():
    b = Builder()
    b.node("Neg", ["x"], "y")
    with pytest.raises(StepError, match=f"{LONGEST} are allowed"):
        clean(b.model({"x": [LONGEST + 1]}, {"y": [LONGEST + 1]}), {})


@pytest.mark.parametrize("length", [1, 1000])
def test_a_short_row_is_not(length):
    b = Builder()
    row = b.node("Range", [b.constant(np.float32(n)) for n in (0, length, 1)])
    b.node("Add", ["x", row], "y")
    assert len(clean(b.model({"x": [1, length]}, {"y": [1, length]}), {}).model.graph.node) == 1
