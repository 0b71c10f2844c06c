"""A model that is quantized already keeps its encodings, whoever wrote them."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from quantization_models import node, small_network, small_samples

from anfbuild.errors import StepError
from anfbuild.graph import clean
from anfbuild.quantization.as_is import keep
from anfbuild.quantization.encodings import Encoding, Encodings
from anfbuild.quantization.quantize import quantize
from anfbuild.quantization.statistics import Statistics, collect

NOTHING = Statistics({}, 0)


@pytest.mark.parametrize("scheme", ["int8", "int8_per_channel", "a16w8"])
def test_what_we_quantized_comes_back_with_its_encodings(scheme: str) -> None:
    network = small_network()
    made, written = quantize(network, collect(network, small_samples(2)), scheme, "minmax")
    cleaned = clean(made, {}).model
    kept, found = quantize(cleaned, NOTHING, "as_is", "mse")
    assert kept is cleaned
    assert Encodings.from_json(found.to_json()) == found
    for name, encoding in found.activations.items():
        assert written.activations.get(name, encoding) == encoding
    assert {"x", "y"} <= found.activations.keys() & written.activations.keys()
    assert set(found.parameters.values()) <= {*written.parameters.values(), *written.activations.values()}


def small(nodes: list[onnx.NodeProto], kind: int = TensorProto.FLOAT, **constants: np.ndarray) -> onnx.ModelProto:
    """x (2, 3) -> nodes -> y, both of `kind`."""
    ends = [helper.make_tensor_value_info(name, kind, [2, 3]) for name in "xy"]
    tensors = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_integer_ends_stay_integers() -> None:
    made = small(
        [
            node("DequantizeLinear", ["x", "s", "z"], ["real"]),
            node("Relu", ["real"], ["positive"]),
            node("QuantizeLinear", ["positive", "s", "z"], ["y"]),
        ],
        TensorProto.INT8,
        s=np.float32(0.5),
        z=np.int8(-3),
    )
    encoding = Encoding("int8", (0.5,), (-3,))
    assert keep(made) == Encodings({"real": encoding, "positive": encoding}, {})


def test_a_missing_zero_point_is_one_of_zero() -> None:
    made = small(
        [
            node("QuantizeLinear", ["x", "s"], ["q"]),
            node("DequantizeLinear", ["q", "s"], ["real"]),
            node("DequantizeLinear", ["w", "scales"], ["v"], axis=0),
            node("Mul", ["real", "v"], ["y"]),
        ],
        s=np.float32(0.5),
        w=np.ones((2, 3), np.int8),
        scales=np.array([1, 2], np.float32),
    )
    kept = keep(made)
    assert kept.activations["x"] == Encoding("uint8", (0.5,), (0,))
    assert kept.parameters == {"w": Encoding("int8", (1.0, 2.0), (0, 0), 0)}


def test_a_float_model_has_nothing_to_keep() -> None:
    with pytest.raises(StepError, match="is a float model") as error:
        quantize(small_network(), NOTHING, "as_is", "mse")
    assert "int8_per_channel" in str(error.value)


def test_encodings_for_weights_alone_are_not_enough() -> None:
    made = small(
        [node("DequantizeLinear", ["w", "s"], ["v"]), node("Add", ["x", "v"], ["y"])],
        w=np.ones((2, 3), np.int8),
        s=np.float32(1),
    )
    with pytest.raises(StepError, match="weights alone"):
        keep(made)


def test_a_computed_encoding_cannot_be_kept() -> None:
    made = small(
        [
            node("ReduceMax", ["x"], ["s"], keepdims=0),
            node("QuantizeLinear", ["x", "s"], ["q"], name="quantizes"),
            node("DequantizeLinear", ["q", "s"], ["y"]),
        ]
    )
    with pytest.raises(StepError, match="computed") as error:
        keep(made)
    assert error.value.where == "node quantizes (QuantizeLinear)"


def test_integers_have_the_type_that_is_stated_where_there_is_no_zero_point() -> None:
    made = small(
        [
            helper.make_node("QuantizeLinear", ["x", "s"], ["q"], output_dtype=TensorProto.INT16),
            helper.make_node("DequantizeLinear", ["q", "s"], ["r"]),
            helper.make_node("Relu", ["r"], ["p"]),
            helper.make_node("QuantizeLinear", ["p", "s"], ["u"]),
            helper.make_node("DequantizeLinear", ["u", "s"], ["y"]),
        ],
        s=np.float32(0.5),
    )
    found = keep(made).activations
    assert {name: found[name].dtype for name in ("x", "r", "p", "y")} == {
        "x": "int16", "r": "int16", "p": "uint8", "y": "uint8",
    }  # fmt: skip
    unknown = small([helper.make_node("DequantizeLinear", ["x", "s"], ["y"])], TensorProto.INT8, s=np.float32(0.5))
    with pytest.raises(StepError, match="nothing says of what type"):
        keep(unknown)
