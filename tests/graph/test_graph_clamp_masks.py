"""Mask constants that only a Softmax sees are clamped, its results equal; all others stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from anfbuild.graph import Session, clean
from anfbuild.graph.conditioning import condition

HUGE = [float(np.finfo(np.float32).min), float("-inf"), -1e9, -65504.0, -1e4]
ROWS, KEYS = 3, 5


def scalar(b, value):
    return b.constant(np.float32(value))


def switch(b):
    """1 where a position is hidden, from the integers that say which are not."""
    mask = b.node("Cast", [b.node("Unsqueeze", ["mask", b.constant(np.array([0]))])], to=TensorProto.FLOAT)
    return b.node("Sub", [scalar(b, 1), mask])


def hidden(b):
    return b.node("Cast", [switch(b)], to=TensorProto.BOOL)


def added_table(b, scores, huge):
    table = np.where(np.tri(ROWS, KEYS, 1, dtype=bool), 0, np.float32(huge)).astype(np.float32)
    return b.node("Add", [b.constant(table), scores])


FORMS = {
    "factor": lambda b, s, huge: b.node("Add", [s, b.node("Mul", [switch(b), scalar(b, huge)])]),
    "subtracted": lambda b, s, huge: b.node("Sub", [s, b.node("Mul", [scalar(b, -huge), switch(b)])]),
    "reversed": lambda b, s, huge: b.node(
        "Add",
        [
            s,
            b.node(
                "Mul",
                [
                    b.node("Sub", [b.node("Cast", ["mask"], to=TensorProto.FLOAT), scalar(b, 1)]),
                    scalar(b, -huge),
                ],
            ),
        ],
    ),
    "filled": lambda b, s, huge: b.node("Where", [hidden(b), scalar(b, huge), s]),
    "chosen": lambda b, s, huge: b.node(
        "Add", [b.node("Expand", [b.node("Where", [hidden(b), scalar(b, huge), scalar(b, 0)]), shape(b)]), s]
    ),
    "table": added_table,
}
"""How exporters mask scores: builder, scores, constant -> masked scores."""


def shape(b):
    return b.constant(np.array([ROWS, KEYS]))


def finite(form, huge):
    """Infinity times 0 is no number: what multiplies is finite."""
    return form not in ("factor", "subtracted", "reversed") or np.isfinite(huge)


def model(forms, huge):
    """Scores (3, 5), masked by each of `forms` -> Softmax -> y."""
    b = Builder()
    value = "x"
    for form in forms:
        value = FORMS[form](b, value, huge)
    b.node("Softmax", [value], "y", axis=-1, name="softmax")
    built = b.model({"x": [ROWS, KEYS]}, {"y": [ROWS, KEYS]})
    built.graph.input.append(helper.make_tensor_value_info("mask", TensorProto.INT64, [KEYS]))
    return clean(built, {}).model


def least(model):
    return min(
        float(value.min())
        for tensor in model.graph.initializer
        if (value := onnx.numpy_helper.to_array(tensor)).dtype.kind == "f"
    )


def answers(model, scores, mask):
    return Session(model, threads=1).run({"x": scores, "mask": mask})["y"]


@given(
    forms=st.lists(st.sampled_from(sorted(FORMS)), min_size=1, max_size=3),
    huge=st.sampled_from(HUGE),
    bound=st.sampled_from([-40.0, -50.0, -100.0]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=40, deadline=None)
def test_the_softmax_returns_the_same(forms, huge, bound, seed):
    forms = [form for form in forms if finite(form, huge)] or ["table"]
    random = np.random.default_rng(seed)
    before = model(forms, huge)
    after = onnx.ModelProto.FromString(before.SerializeToString())
    done = condition(after, mask_clamp=bound)
    assert len(done.rewrites) == len(forms)
    assert not done.notes
    assert np.abs([rewrite.new for rewrite in done.rewrites]).tolist() == [-bound] * len(forms)
    assert least(after) >= bound
    mask = random.integers(0, 2, KEYS)
    mask[0] = 1  # of no row is everything hidden
    scores = random.uniform(-8, 8, (ROWS, KEYS)).astype(np.float32)
    np.testing.assert_allclose(answers(after, scores, mask), answers(before, scores, mask), rtol=1e-5, atol=1e-9)


def test_the_rewrite_names_the_node_and_both_values():
    made = model(["filled"], -1e9)
    (rewrite,) = condition(made, mask_clamp=-50.0).rewrites
    assert (rewrite.op_type, rewrite.old, rewrite.new) == ("Where", -1e9, -50.0)
    assert rewrite.node in [node.name for node in made.graph.node]


def test_nothing_is_asked_nothing_is_done():
    made = model(["filled"], -1e9)
    before = made.SerializeToString()
    assert condition(made, mask_clamp=None).rewrites == []
    assert made.SerializeToString() == before


def stays(build, outputs=("y",), value=-1e9):
    """What `build(b, constant)` makes, ending in y, comes out as it was; the notes."""
    b = Builder()
    build(b, b.constant(np.asarray(value, np.float32), "huge"))
    made = clean(b.model({"x": [ROWS, KEYS]}, dict.fromkeys(outputs)), {}).model
    before = made.SerializeToString()
    done = condition(made, mask_clamp=-50.0)
    assert done.rewrites == []
    assert made.SerializeToString() == before
    return " ".join(done.notes)


def row(*values):
    return np.array(values, np.float32)


MASK = row(0, 0, 0, 0, -1e9)


@pytest.mark.parametrize(
    ("build", "value", "why"),
    [
        (lambda b, c: b.node("Relu", [b.node("Add", ["x", c])], "y"), MASK, ""),
        (lambda b, c: b.node("LogSoftmax", [b.node("Add", ["x", c])], "y"), MASK, ""),
        (lambda b, c: b.node("Softmax", [b.node("Max", ["x", c])], "y"), MASK, "Max"),
        (lambda b, c: b.node("Softmax", [b.node("Sub", ["x", c])], "y"), MASK, "large score"),
        (lambda b, c: b.node("Softmax", [b.node("Add", ["x", c])], "y", axis=0), MASK, "last axis"),
        (lambda b, c: b.node("Softmax", [b.node("Mul", [b.node("Add", ["x", c]), "x"])], "y"), MASK, "Mul"),
        (lambda b, c: b.node("Softmax", [b.node("Add", ["x", c])], "y"), row(0, -70, -100, 0, -1e9), "between"),
        (lambda b, c: b.node("Softmax", [b.node("Add", ["x", c])], "y"), row(*[-1e9] * 5), "whole row"),
        (lambda b, c: b.node("Softmax", [b.node("Add", ["x", c])], "y"), row(0, 0, 0, 0, -1024), ""),
    ],
)
def test_what_more_than_a_softmax_sees_stays(build, value, why):
    assert why in stays(build, value=value)


def test_a_sum_that_is_an_output_too_stays():
    def build(b, constant):
        b.node("Softmax", [b.node("Add", ["x", constant], "sum")], "y")

    assert "is an output" in stays(build, ("y", "sum"), MASK)


def test_of_two_readers_the_one_with_the_softmax_reads_another_constant():
    b = Builder()
    huge = b.constant(MASK, "huge")
    b.node("Softmax", [b.node("Add", ["x", huge], name="scores")], "y")
    b.node("Add", ["x", huge], "z", name="other")
    made = clean(b.model({"x": [ROWS, KEYS]}, {"y": None, "z": None}), {}).model
    done = condition(made, mask_clamp=-50.0)
    assert [rewrite.node for rewrite in done.rewrites] == ["scores"]
    read = {node.name: node.input[1] for node in made.graph.node if node.op_type == "Add"}
    assert read["other"] == "huge"
    assert read["scores"] != "huge"


def test_a_long_way_to_the_softmax_is_walked():
    b = Builder()
    value = b.node("Add", ["x", b.constant(MASK, "huge")])
    for _ in range(3000):
        value = b.node("Add", [value, "x"])
    b.node("Softmax", [value], "y")
    made = clean(b.model({"x": [ROWS, KEYS]}, {"y": None}), {}).model
    assert len(condition(made, mask_clamp=-50.0).rewrites) == 1
