"""Weights that a model does not bring are made up, the same each time, and not without bounds."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from graph_models import conv_model, copy
from onnx import TensorProto, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph.untrained import MOST, fill_weights


def without_data(how: str) -> onnx.ModelProto:
    model = conv_model()
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
        if how == "beside":
            tensor.external_data.add(key="location", value="gone.bin")
            tensor.data_location = TensorProto.EXTERNAL
    return model


@pytest.mark.parametrize("how", ["beside", "nowhere"])
def test_what_is_not_in_the_model_is_made_up_the_same_each_time(how: str) -> None:
    model, again = without_data(how), without_data(how)
    fill_weights(model)
    fill_weights(again)
    assert model == again
    (weights,) = (numpy_helper.to_array(tensor) for tensor in model.graph.initializer)
    assert weights.shape == (4, 3, 3, 3)
    assert 0.5 < weights.std() / np.sqrt(2 / 27) < 1.5


def test_what_is_in_the_model_stays() -> None:
    model = conv_model()
    before = copy(model)
    fill_weights(model)
    assert model == before


@pytest.mark.parametrize(
    ("dims", "kind", "says"),
    [
        ([2**20, MOST // 2**20], TensorProto.FLOAT, "bytes that are made up"),
        ([-1, 3, 3, 3], TensorProto.FLOAT, "do not say"),
        ([4, 3, 3, 3], 99, "do not say"),
        ([4, 3, 3, 3], TensorProto.STRING, "do not say"),
    ],
)
def test_weights_that_cannot_be_are_refused_by_name(dims: list[int], kind: int, says: str) -> None:
    model = without_data("nowhere")
    (tensor,) = model.graph.initializer
    tensor.dims[:] = dims
    tensor.data_type = kind
    with pytest.raises(StepError, match=says) as error:
        fill_weights(model)
    assert repr(tensor.name) in error.value.what
