import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from quantization_models import model, node, small_network, small_samples

from anfbuild.errors import StepError
from anfbuild.graph.execute import Session
from anfbuild.qnn import Options, unavailable
from anfbuild.qnn.compile import compile_context
from anfbuild.quantization.encodings import Encodings
from anfbuild.quantization.quantize import quantize
from anfbuild.quantization.schemes import SCHEMES
from anfbuild.quantization.statistics import collect
from anfbuild.quantization.topology import analyse


def quantized(network: onnx.ModelProto, scheme: str = "int8", seed: int = 0) -> tuple[onnx.ModelProto, Encodings]:
    """`network` quantized with minmax on two normal samples, and its encodings."""
    random = np.random.default_rng(seed)
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in network.graph.input}
    samples = [
        (str(k), {name: random.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()})
        for k in range(2)
    ]
    made, encodings = quantize(network, collect(network, samples), scheme, "minmax")
    onnx.checker.check_model(made)
    return made, encodings


def sqnr(a: np.ndarray, b: np.ndarray) -> float:
    return float(10 * np.log10((a**2).sum() / ((a - b) ** 2).sum()))


def initializers(network: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in network.graph.initializer}


@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_more_bits_come_nearer_to_float(scheme: str, opset: int) -> None:
    network, samples = small_network(opset), small_samples(8)
    made, _ = quantize(network, collect(network, samples), scheme, "mse")
    onnx.checker.check_model(made, full_check=True)
    reference, session = Session(network), Session(made)
    names = [(o.name, o.type.tensor_type.elem_type) for o in (*made.graph.input, *made.graph.output)]
    assert names == [("x", TensorProto.FLOAT), ("y", TensorProto.FLOAT)]
    got = np.stack([session.run(feeds)["y"] for _, feeds in samples])
    want = np.stack([reference.run(feeds)["y"] for _, feeds in samples])
    least = {"int8": 25, "int8_per_channel": 25, "a16w8": 30, "a16w8_per_channel": 35, "a16w16": 60}
    assert sqnr(want, got) > least[scheme]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_types_are_those_of_the_scheme(scheme: str) -> None:
    made, encodings = quantized(small_network(), scheme)
    wide = "16" in scheme
    assert {e.dtype for e in encodings.activations.values()} == {"uint16" if "a16" in scheme else "uint8"}
    domains = {n.domain for n in made.graph.node if n.op_type in ("QuantizeLinear", "DequantizeLinear")}
    assert domains == {"com.microsoft" if wide else ""}
    weight, bias = encodings.parameters["w1"], encodings.parameters["b1"]
    expected = {"int8": "uint8", "int8_per_channel": "int8", "a16w8": "uint8", "a16w8_per_channel": "int8"}
    assert weight.dtype == expected.get(scheme, "int16")
    assert bias.dtype == "int32"
    np.testing.assert_allclose(bias.scale, np.array(weight.scale) * encodings.activations["x"].scale[0], rtol=1e-6)
    axes = {name: encodings.parameters[name].axis for name in ("w1", "w2", "w3", "w4")}
    per_channel = {"w1": 0, "w2": 0, "w3": 1, "w4": 0}
    assert axes == (per_channel if SCHEMES[scheme].per_channel else dict.fromkeys(axes))
    assert bias.axis == (0 if SCHEMES[scheme].per_channel else None)


def test_tensors_that_move_data_or_are_cut_by_an_activation_share_an_encoding() -> None:
    encodings = quantized(small_network())[1].activations
    assert encodings["c1"] == encodings["r1"]  # Conv, Relu
    assert encodings["a2"] == encodings["h2"]  # Add, Clip
    assert encodings["h2"].zero_point == (0,)
    assert encodings["c2"] != encodings["a2"]
    assert encodings["p2"] == encodings["d2"]  # MaxPool
    assert encodings["f3"] == encodings["g3"]  # Flatten
    assert (encodings["y"].scale, encodings["y"].zero_point) == ((1 / 256,), (0,))


def test_only_what_decides_an_encoding_is_observed() -> None:
    observed = analyse(small_network()).observed
    assert {"c1", "a2", "p2", "f3", "y"}.isdisjoint(observed)
    assert {"x", "r1", "c2", "h2", "d2", "y4"} <= set(observed)


def test_an_output_of_the_graph_keeps_its_own_range_before_a_relu() -> None:
    nodes = [node("Add", ["x", "x"], ["a"]), node("Relu", ["a"], ["y"])]
    encodings = quantized(model(nodes, {"x": [1, 8]}, ["a", "y"]))[1].activations
    assert encodings["a"].zero_point != (0,)


def test_no_codes_are_wasted_where_a_sigmoid_saturates() -> None:
    nodes = [node("Mul", ["x", "k"], ["m"]), node("Sigmoid", ["m"], ["y"])]
    network = model(nodes, {"x": [1, 4000]}, ["y"], {"k": np.float32(30)})
    made, encodings = quantized(network)
    assert encodings.activations["m"].scale[0] * 255 == pytest.approx(2 * np.log(511), rel=1e-3)
    x = np.linspace(-3, 3, 4000, dtype=np.float32).reshape(1, -1)
    error = np.abs(Session(made).run({"x": x})["y"] - Session(network).run({"x": x})["y"])
    saturated = np.abs(x) > 0.3
    assert error[saturated].max() <= 1.5 / 256


def test_float_parameters_stay_float_and_integer_tensors_are_left_alone() -> None:
    nodes = [
        node("Clip", ["x", "low", "high"], ["c"]),
        node("Resize", ["c", "", "scales"], ["r"], mode="nearest", nearest_mode="floor"),
        node("ArgMax", ["r"], ["i"], axis=1),
        node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
        node("Add", ["i", "one"], ["j"]),
    ]
    constants = {
        **{"low": np.float32(-1), "high": np.float32(1), "one": np.int64(1)},
        "scales": np.array([1, 1, 2, 2], np.float32),
    }
    network = model(nodes, {"x": [1, 4, 4, 4]}, ["y", "j"], constants)
    made, encodings = quantized(network)
    by_type = {n.op_type: n for n in made.graph.node}
    assert list(by_type["Clip"].input[1:]) == ["low", "high"]
    assert by_type["Resize"].input[2] == "scales"
    assert list(by_type["Add"].input) == ["i", "one"]
    assert by_type["Cast"].input[0] == "i"
    assert encodings.parameters == {}
    assert encodings.activations["r"] == encodings.activations["c"]


@pytest.mark.parametrize(
    ("attributes", "shares"),
    [
        ({"mode": "linear"}, True),
        ({"mode": "cubic"}, False),  # it overshoots
        (
            {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 50.0},
            False,
        ),
    ],
)
def test_a_resize_that_keeps_to_the_range_keeps_the_encoding(attributes: dict[str, str | float], shares: bool) -> None:
    nodes = [node("Resize", ["x", "roi", "scales"], ["r"], **attributes), node("Relu", ["r"], ["y"])]
    constants = {"roi": np.array([0, 0, 0, 0, 1, 1, 2, 2], np.float32), "scales": np.array([1, 1, 2, 2], np.float32)}
    _, encodings = quantized(model(nodes, {"x": [1, 4, 4, 4]}, ["y"], constants))
    assert (encodings.activations["r"] == encodings.activations["x"]) is shares


def test_a_constant_read_with_two_encodings_is_written_twice() -> None:
    nodes = [node("Conv", ["x", "w", "b"], ["c"]), node("Conv", ["c", "w", "b"], ["y"])]
    constants = {"w": np.eye(3, dtype=np.float32).reshape(3, 3, 1, 1) * 9, "b": np.ones(3, np.float32)}
    made, encodings = quantized(model(nodes, {"x": [1, 3, 4, 4]}, ["y"], constants))
    biases = [e for e in encodings.parameters.values() if e.dtype == "int32"]
    assert len(set(biases)) == 2
    assert sum(array.dtype == np.uint8 and array.ndim == 4 for array in initializers(made).values()) == 1


def test_names_of_the_model_are_never_taken_twice() -> None:
    nodes = [node("Relu", ["x"], ["x_QuantizeLinear_Output"]), node("Neg", ["x_QuantizeLinear_Output"], ["y"])]
    made, _ = quantized(model(nodes, {"x": [1, 5]}, ["y"]))
    written = [name for n in made.graph.node for name in n.output]
    assert len(written) == len(set(written))
    assert len({n.name for n in made.graph.node}) == len(made.graph.node)


def test_batch_normalization_and_prelu_get_8_bit_scales_in_16_bit_schemes() -> None:
    nodes = [node("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"]), node("PRelu", ["n", "slope"], ["y"])]
    ones = np.ones(4, np.float32)
    constants = {"s": ones, "b": ones, "m": ones, "v": ones, "slope": np.full((4, 1, 1), 0.2, np.float32)}
    parameters = quantized(model(nodes, {"x": [1, 4, 3, 3]}, ["y"], constants), "a16w16")[1].parameters
    dtypes = {name: parameters[name].dtype for name in ("s", "b", "m", "slope")}
    assert dtypes == {"s": "uint8", "b": "int32", "m": "uint16", "slope": "uint8"}


def normalized(kind: str) -> onnx.ModelProto:
    """A convolution, then a normalization with scale and bias."""
    random = np.random.default_rng(0)
    constants = {
        "w": random.standard_normal((8, 3, 3, 3)),
        "s": random.uniform(0.5, 2, 8),
        "b": random.uniform(-1, 1, 8),
    }
    nodes = [
        node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        node(kind, ["c", "s", "b"], ["y"]),
    ]
    floats = {name: value.astype(np.float32) for name, value in constants.items()}
    return model(nodes, {"x": [1, 3, 8, 8]}, ["y"], floats)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kind", ["LayerNormalization", "InstanceNormalization"])
def test_normalizations_have_a_scale_per_tensor_and_an_int32_bias(kind: str, scheme: str) -> None:
    parameters = quantized(normalized(kind), scheme)[1].parameters
    assert (parameters["s"].axis, parameters["b"].axis) == (None, None)
    assert parameters["s"].dtype == ("int16" if scheme == "a16w16" else "uint8")
    assert parameters["b"].dtype == "int32"


@pytest.mark.skipif(unavailable() is not None, reason=str(unavailable()))
@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("LayerNormalization", "int8"), ("LayerNormalization", "a16w16"), ("InstanceNormalization", "a16w8")],
)
def test_normalizations_stay_in_integers_on_the_htp(kind: str, scheme: str, tmp_path: Path) -> None:
    made = quantized(normalized(kind), scheme)[0]
    compiled = compile_context(made.SerializeToString(), Options(57, "v75", 8), tmp_path)
    assert (compiled.partitions, compiled.float_tensors) == (1, 0)


def test_statistics_of_another_model_are_refused() -> None:
    other = collect(model([node("Neg", ["x"], ["y"])], {"x": [1, 3]}, ["y"]), [("a", {"x": np.ones((1, 3), "f")})])
    with pytest.raises(StepError, match="collected on another model"):
        quantize(small_network(), other, "int8", "minmax")


def test_a_model_that_is_quantized_already_is_refused() -> None:
    network = small_network()
    statistics = collect(network, small_samples(2))
    quantized, _ = quantize(network, statistics, "int8", "minmax")
    with pytest.raises(StepError, match="quantized already"):
        quantize(quantized, statistics, "int8", "minmax")


def test_open_shapes_and_other_floats_are_refused() -> None:
    network = small_network()
    network.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "height"
    del network.graph.value_info[:]
    with pytest.raises(StepError, match="'x' has no static shape"):
        analyse(network)
    cast = model([node("Cast", ["x"], ["y"], to=TensorProto.FLOAT16)], {"x": [1]}, ["y"])
    with pytest.raises(StepError, match="'y' is float16"):
        analyse(cast)


def test_the_model_is_the_same_bytes_in_another_process() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import hashlib\n"
        "from quantization_models import small_network, small_samples\n"
        "from anfbuild.quantization.quantize import quantize\n"
        "from anfbuild.quantization.statistics import collect\n"
        "model = small_network()\n"
        "made, _ = quantize(model, collect(model, small_samples(2)), 'int8_per_channel', 'mse')\n"
        "print(hashlib.sha256(made.SerializeToString(deterministic=True)).hexdigest())\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(p for p in sys.path if p)},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
