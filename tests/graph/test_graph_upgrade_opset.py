"""Old opsets are converted, those that the house knows stay, newer ones are refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anfbuild.errors import StepError
from anfbuild.graph.passes import upgrade_opset


def relu(opset, ir=8):
    b = Builder()
    b.node("Relu", ["x"], "y")
    return b.model({"x": [1, 4]}, {"y": [1, 4]}, opset=opset, ir=ir)


@pytest.mark.parametrize("opset", [9, 11, 12, 13, 16])
def test_an_old_opset_is_converted_and_computes_the_same(opset):
    def build():
        b = Builder()
        hidden = b.node("BatchNormalization", ["x", b.positive(3), b.weights(3), b.weights(3), b.positive(3)])
        hidden = b.node("Softmax", [hidden], axis=3)
        b.node("Dropout", [hidden], "y")
        return b.model({"x": [1, 3, 4, 5]}, {"y": [1, 3, 4, 5]}, opset=opset)

    model = build()
    model.metadata_props.add(key="character", value="abc")
    assert upgrade_opset.run(model).notes == [f"opset {opset} to 17"]
    assert model.opset_import[0].version == 17
    assert model.metadata_props[0].value == "abc"
    assert_same_floats(build(), model, x=[1, 3, 4, 5])


@pytest.mark.parametrize("opset", [17, 19, 21])
def test_a_known_opset_stays(opset):
    model = relu(opset, ir=10)
    assert upgrade_opset.run(model).changed == 0
    assert model == relu(opset, ir=10)


def test_a_newer_opset_is_refused():
    with pytest.raises(StepError, match="opset 22; up to 21"):
        upgrade_opset.run(relu(22, ir=10))


def test_what_cannot_be_converted_is_refused_with_a_remedy():
    b = Builder()
    b.node("Affine", ["x"], "y", alpha=1.0, beta=1.0)
    with pytest.raises(StepError, match=r"from opset 1 to 17.*Affine") as caught:
        upgrade_opset.run(b.model({"x": [1, 1, 2, 2]}, {"y": None}, opset=1))
    assert "opset 17 or newer" in caught.value.remedy


def test_an_operator_that_changed_its_meaning_is_refused_with_its_node():
    b = Builder()
    b.node("Hardmax", ["x"], "y", axis=1)
    with pytest.raises(StepError, match="another meaning") as caught:
        upgrade_opset.run(b.model({"x": [1, 2, 2, 2]}, {"y": None}, opset=12))
    assert caught.value.where == "node y (Hardmax)"


SCALES = st.floats(0.3, 3.0).map(lambda scale: round(scale, 2))


@given(
    op=st.sampled_from(["Upsample", "Resize"]),
    mode=st.sampled_from(["nearest", "linear"]),
    scales=st.tuples(SCALES, SCALES),
)
@settings(deadline=None)
def test_old_resizing_keeps_its_samples(op, mode, scales):
    """The converter alone moves every sample of a linear one by half a pixel."""
    assume(op == "Resize" or min(scales) >= 1)
    b = Builder()
    b.node(op, ["x", b.constant(np.array([1, 1, *scales], np.float32))], "y", mode=mode)
    model = b.model({"x": [1, 2, 7, 9]}, {"y": ["n", "c", "h", "w"]}, opset=9 if op == "Upsample" else 10)
    before = onnx.ModelProto.FromString(model.SerializeToString())
    if mode == "nearest" and min(scales) < 1 < max(scales):
        with pytest.raises(StepError, match="enlarges one axis and shrinks another"):
            upgrade_opset.run(model)
    else:
        upgrade_opset.run(model)
        assert_same_floats(before, model, x=[1, 2, 7, 9])


def test_nodes_of_other_domains_stay():
    b = Builder()
    b.node("Gelu", ["x"], "t", domain="com.microsoft")
    b.node("Relu", ["t"], "y")
    model = b.model({"x": [1, 4]}, {"y": [1, 4]}, opset=13)
    model.opset_import.add(domain="com.microsoft", version=1)
    upgrade_opset.run(model)
    assert {entry.domain: entry.version for entry in model.opset_import} == {"": 17, "com.microsoft": 1}
    assert model.graph.node[0].domain == "com.microsoft"
