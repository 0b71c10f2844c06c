"""Outputs that the recipe does not ask for are cut."""

from __future__ import annotations

import pytest
from graph_models import Builder, assert_same_floats, conv_model

from anfbuild.errors import RecipeError
from anfbuild.graph.passes import prune_outputs, remove_dead


def two_heads():
    b = Builder()
    body = b.node("Relu", ["x"], "body")
    b.node("Sigmoid", [body], "probability")
    b.node("MatMul", [body, b.weights(4, 4)], "embedding")
    return b.model({"x": [2, 4]}, {"probability": [2, 4], "embedding": [2, 4]})


def names(model):
    return [value.name for value in model.graph.output]


def test_all_outputs_stay_unless_told():
    model = two_heads()
    assert prune_outputs.run(model, None).changed == 0
    assert model == two_heads()


def test_a_head_is_cut_and_its_nodes_and_weights_go():
    model = two_heads()
    assert prune_outputs.run(model, ["probability"]).notes == ["cut output embedding"]
    remove_dead.run(model)
    assert names(model) == ["probability"]
    assert [node.op_type for node in model.graph.node] == ["Relu", "Sigmoid"]
    assert not model.graph.initializer
    assert_same_floats(two_heads(), model, x=[2, 4])


def test_outputs_come_in_the_order_of_the_recipe():
    model = two_heads()
    prune_outputs.run(model, ["embedding", "probability"])
    assert names(model) == ["embedding", "probability"]


def test_the_model_can_be_cut_at_any_tensor():
    model = two_heads()
    assert prune_outputs.run(model, ["body"]).notes == [
        "cut output probability",
        "cut output embedding",
        "new output body",
    ]
    assert model.graph.output[0].type.tensor_type.elem_type == 1


def test_an_unknown_output_is_refused_with_choices():
    with pytest.raises(RecipeError, match="did you mean 'probability'") as caught:
        prune_outputs.run(two_heads(), ["probabilty"])
    assert caught.value.choices == ["probability", "embedding"]


def test_at_least_one_output_stays():
    with pytest.raises(RecipeError, match="no output is kept"):
        prune_outputs.run(conv_model(), [])
