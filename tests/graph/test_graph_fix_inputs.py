"""Every input gets the static shape that the recipe states, or the user is told what to type."""

from __future__ import annotations

import pytest
from graph_models import Builder, conv_model

from anfbuild.errors import RecipeError
from anfbuild.graph import value_shapes
from anfbuild.graph.passes import fix_inputs


def open_model():
    b = Builder()
    b.node("Add", ["image", b.weights(1)], "y")
    b.node("Relu", ["ids"], "u")
    return b.model({"image": ["N", 3, "H", "W"], "ids": [1, "length"]}, {"y": ["N", 3, "H", "W"], "u": [1, "length"]})


def test_open_dimensions_take_the_sizes_of_the_recipe():
    model = open_model()
    result = fix_inputs.run(model, {"image": [1, 3, 32, 64], "ids": [1, 7]})
    assert result.changed == 4
    shapes = value_shapes(model)
    assert shapes["image"] == shapes["y"] == (1, 3, 32, 64)
    assert shapes["ids"] == shapes["u"] == (1, 7)


def test_a_static_model_needs_no_shapes():
    model = conv_model()
    assert fix_inputs.run(model, {}).changed == 0
    assert model == conv_model()


def test_what_stays_open_is_listed_with_what_to_type():
    with pytest.raises(RecipeError) as caught:
        fix_inputs.run(open_model(), {})
    text = str(caught.value)
    assert "input 'image' dimension 0 (N): try 1" in text
    assert "input 'image' dimension 2 (H): try 320 or 640 or 960" in text
    assert "input 'ids' dimension 1 (length): try 32 or 64 or 128" in text
    assert "model.inputs.image.shape=[1,3,960,960] model.inputs.ids.shape=[1,128]" in text


def test_following_the_remedy_works():
    model = open_model()
    fix_inputs.run(model, {"image": [1, 3, 960, 960], "ids": [1, 128]})
    assert value_shapes(model)["u"] == (1, 128)


def test_only_what_is_open_is_listed():
    with pytest.raises(RecipeError) as caught:
        fix_inputs.run(open_model(), {"image": [1, 3, 32, 32]})
    assert "image" not in str(caught.value)


def test_an_input_without_any_shape_takes_one_or_is_named():
    model = open_model()
    model.graph.input[1].type.tensor_type.ClearField("shape")
    with pytest.raises(RecipeError, match="input 'ids' states no shape at all"):
        fix_inputs.run(model, {"image": [1, 3, 32, 32]})
    fix_inputs.run(model, {"ids": [1, 7]})
    assert value_shapes(model)["u"] == (1, 7)


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        ({"imag": [1, 3, 32, 32]}, "did you mean 'image'"),
        ({"image": [1, 1, 32, 32]}, r"dimension 1 is 1, but the model fixes it at 3 \(its input is \[N,3,H,W\]\)"),
        ({"image": [3, 32, 32]}, "has 3 dimensions"),
        ({"image": [0, 3, 32, 32]}, "below 1"),
        ({"image": [1, 3, -1, 32]}, "below 1"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(shapes, says):
    with pytest.raises(RecipeError, match=says) as caught:
        fix_inputs.run(open_model(), shapes)
    assert caught.value.where.startswith("model.inputs.ima")


def text_model():
    b = Builder()
    b.node("Add", ["ids", "mask"], "y")
    return b.model({"ids": ["batch", "seq"], "mask": ["batch", "seq"]}, {"y": ["batch", "seq"]})


def test_a_symbol_that_the_recipe_fixes_elsewhere_is_proposed_again():
    with pytest.raises(RecipeError) as caught:
        fix_inputs.run(text_model(), {"ids": [2, 77]})
    assert "input 'mask' dimension 0 (batch): try 2\n" in str(caught.value)
    assert "model.inputs.mask.shape=[2,77]" in str(caught.value)


def test_one_symbol_with_two_sizes_is_noted():
    assert fix_inputs.run(text_model(), {"ids": [1, 77], "mask": [1, 1]}).notes[1:] == [
        "seq is 77 in ids[1] and 1 in mask[1]"
    ]
    assert len(fix_inputs.run(text_model(), {"ids": [1, 77], "mask": [1, 77]}).notes) == 1
