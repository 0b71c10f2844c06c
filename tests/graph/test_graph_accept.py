"""What cannot be handled is refused by name; the rest is brought to one form."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, conv_model, op_types
from onnx import TensorProto, helper

from anfbuild.errors import StepError
from anfbuild.graph.passes import accept


def test_an_ordinary_model_stays_as_it_is():
    model = conv_model()
    assert accept.run(model).changed == 0
    assert model == conv_model()


def test_initializers_are_no_inputs_any_more():
    b = Builder()
    b.node("MatMul", ["x", b.weights(2, 2)], "y")
    model = b.model({"x": [1, 2], b.initializers[0].name: [2, 2]}, {"y": [1, 2]}, opset=8, ir=3)
    assert accept.run(model).notes == ["1 initializers were listed as inputs"]
    assert [value.name for value in model.graph.input] == ["x"]
    assert model.ir_version == 8


def test_local_functions_are_inlined():
    b = Builder()
    b.node("Twice", ["x"], "y", domain="local")
    model = b.model({"x": [1, 2]}, {"y": [1, 2]})
    model.opset_import.add(domain="local", version=1)
    body = [helper.make_node("Add", ["a", "a"], ["b"])]
    model.functions.append(helper.make_function("local", "Twice", ["a"], ["b"], body, model.opset_import[:1]))
    onnx.checker.check_model(model)
    before = onnx.ModelProto.FromString(model.SerializeToString())
    accept.run(model)
    assert op_types(model) == ["Add"]
    assert not model.functions
    assert_same_floats(before, model, x=[1, 2])


def test_the_standard_domain_has_one_name():
    model = conv_model()
    model.graph.node[0].domain = "ai.onnx"
    model.opset_import[0].domain = "ai.onnx"
    accept.run(model)
    assert model.graph.node[0].domain == ""
    assert model.opset_import[0].domain == ""


def strings(model):
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING


def string_initializer(model):
    model.graph.initializer.append(helper.make_tensor("words", TensorProto.STRING, [1], [b"a"]))


def sequence(model):
    model.graph.output[0].type.CopyFrom(helper.make_sequence_type_proto(model.graph.input[0].type))


def sparse(model):
    values = helper.make_tensor("thin", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("where", TensorProto.INT64, [1], np.array([2]))
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [8]))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (strings, "'x' is a string tensor"),
        (string_initializer, "'words' is a string tensor"),
        (sequence, "'y' is a sequence_type"),
        (sparse, "'thin' is a sparse tensor"),
    ],
)
def test_what_is_not_supported_is_named_with_a_remedy(spoil, says):
    model = conv_model()
    spoil(model)
    with pytest.raises(StepError, match=says) as caught:
        accept.run(model)
    assert "model.outputs" in caught.value.remedy


@pytest.mark.parametrize("times", [0, 2])
def test_outputs_that_are_missing_or_listed_twice_are_refused(times):
    model = conv_model()
    outputs = list(model.graph.output) * times
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    with pytest.raises(StepError, match="no outputs" if times == 0 else "'y' is listed twice") as caught:
        accept.run(model)
    assert caught.value.remedy
