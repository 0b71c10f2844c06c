"""The one maker of CPU sessions: reference settings, checked feeds, any tensor as an extra output."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from graph_models import Builder, conv_model

from anfbuild.cores import available_cores
from anfbuild.errors import StepError
from anfbuild.graph import Session, run_each, save, serialize

X = np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)


def test_a_model_runs_from_memory_bytes_and_file(tmp_path):
    model = conv_model()
    save(model, tmp_path / "m.onnx")
    values = [Session(m, threads=1).run({"x": X})["y"] for m in (model, serialize(model), tmp_path / "m.onnx")]
    assert values[0].shape == (1, 4, 8, 8)
    assert (values[0] == values[1]).all()
    assert (values[0] == values[2]).all()


def test_inputs_and_outputs_are_described():
    session = Session(conv_model(height="h"))
    assert session.inputs == {"x": (np.dtype(np.float32), (1, 3, None, 8))}
    assert session.outputs == ["y"]


def test_initializers_listed_as_inputs_need_not_be_fed():
    b = Builder()
    b.node("MatMul", ["x", b.weights(2, 2)], "y")
    model = b.model({"x": [1, 2], b.initializers[0].name: [2, 2]}, {"y": [1, 2]}, opset=8, ir=3)
    assert list(Session(model).inputs) == ["x"]


@pytest.mark.parametrize("as_bytes", [False, True])
def test_any_tensor_can_be_returned_and_the_model_stays_as_it_was(as_bytes):
    model = conv_model()
    before = serialize(model)
    inner, weights = model.graph.node[0].output[0], model.graph.initializer[0].name
    session = Session(before if as_bytes else model, outputs=["y", inner, "x", weights, inner])
    assert session.outputs == ["y", inner, "x", weights]
    values = session.run({"x": X})
    assert (np.maximum(values[inner], 0) == values["y"]).all()
    assert values[inner].min() < 0
    assert (values["x"] == X).all()
    assert values[weights].shape == (4, 3, 3, 3)
    assert serialize(model) == before


def test_an_unknown_extra_output_is_refused_with_the_nearest_name():
    with pytest.raises(StepError, match="did you mean 't2'"):
        Session(conv_model(), outputs=["t22"])


@pytest.mark.parametrize(
    ("feeds", "says"),
    [
        ({}, r"'x' is not fed: expected float32 \[1,3,8,8\]"),
        ({"x": X, "z": X}, "no input 'z'"),
        ({"x": X.astype(np.float64)}, r"'x': expected float32 \[1,3,8,8\], found float64 \[1,3,8,8\]"),
        ({"x": X[:, :, :4]}, r"'x': expected float32 \[1,3,8,8\], found float32 \[1,3,4,8\]"),
        ({"x": X[0]}, r"'x': expected float32 \[1,3,8,8\], found float32 \[3,8,8\]"),
    ],
)
def test_a_wrong_feed_is_refused(feeds, says):
    with pytest.raises(StepError, match=says):
        Session(conv_model()).run(feeds)


def test_open_dimensions_take_any_size():
    assert Session(conv_model(height="h")).run({"x": X[:, :, :5]})["y"].shape == (1, 4, 5, 8)


def test_nan_comes_back_as_it_is():
    b = Builder()
    b.node("Log", ["x"], "y")
    assert np.isnan(Session(b.model({"x": [1]}, {"y": [1]})).run({"x": np.array([-1], np.float32)})["y"]).all()


def test_an_operator_that_the_cpu_does_not_know_is_named():
    b = Builder()
    b.node("EPContext", ["x"], "y", domain="vendor")
    model = b.model({"x": [1]}, {"y": [1]})
    model.opset_import.add(domain="vendor", version=1)
    with pytest.raises(StepError, match="EPContext"):
        Session(model)


def test_a_failing_run_is_an_error():
    b = Builder()
    b.node("Reshape", ["x", "shape"], "y")
    model = b.model({"x": [4]}, {"y": None})
    model.graph.input.append(onnx.helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, [1]))
    with pytest.raises(StepError, match="fails on the CPU"):
        Session(model).run({"x": np.zeros(4, np.float32), "shape": np.array([3])})


def test_a_failure_writes_nothing_beside_its_error(capfd):
    test_a_failing_run_is_an_error()
    test_an_operator_that_the_cpu_does_not_know_is_named()
    assert capfd.readouterr() == ("", "")


def test_strings_are_refused():
    b = Builder()
    b.node("Identity", ["x"], "y")
    model = b.model({"x": [1]}, {"y": [1]}, kind=onnx.TensorProto.STRING)
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.STRING
    with pytest.raises(StepError, match=r"'x' is of type tensor\(string\)"):
        Session(model)


def to_file(model, folder):
    save(model, folder / "m.onnx")
    return folder / "m.onnx"


SIZE = 64
FULL = np.full((1, SIZE), 255, np.uint8)


def integer_product(zero_point: int | None, *, channels: bool = False) -> onnx.ModelProto:
    """x (1, 64), 8 bits without sign, times weights that are all 127."""
    b = Builder()
    inputs = ["x", b.constant(np.full((SIZE, SIZE), 127, np.int8))]
    if zero_point is not None:
        inputs += ["", b.constant(np.full((SIZE,) if channels else (), zero_point, np.int8))]
    b.node("Cast", [b.node("MatMulInteger", inputs)], "y", to=onnx.TensorProto.FLOAT)
    return b.model({"x": [1, SIZE]}, {"y": [1, SIZE]}, kind=onnx.TensorProto.UINT8)


@pytest.mark.parametrize("form", [lambda model, _: model, lambda model, _: model.SerializeToString(), to_file])
@pytest.mark.parametrize(("zero_point", "channels"), [(None, False), (0, False), (-5, False), (7, True)])
def test_u8_by_s8_products_do_not_saturate(tmp_path, form, zero_point, channels):
    """AVX2 hosts without VNNI add pairs of such products in 16 bits: 2 x 255 x 127 is over 32767."""
    model = integer_product(zero_point, channels=channels)
    result = Session(form(model, tmp_path)).run({"x": FULL})["y"]
    assert (result == SIZE * 255 * (127 - (zero_point or 0))).all()
    assert model == integer_product(zero_point, channels=channels)


def test_quantized_products_do_not_saturate():
    b = Builder()
    one, none = b.constant(np.float32(1)), b.constant(np.uint8(0))
    weights = b.constant(np.full((SIZE, SIZE), 127, np.int8))
    small = b.constant(np.float32(SIZE * 127))
    inputs = ["x", one, none, weights, one, b.constant(np.int8(0)), small, none]
    b.node("Cast", [b.node("QLinearMatMul", inputs)], "y", to=onnx.TensorProto.FLOAT)
    model = b.model({"x": [1, SIZE]}, {"y": [1, SIZE]}, kind=onnx.TensorProto.UINT8)
    assert (Session(model).run({"x": FULL})["y"] == 255).all()


def test_the_settings_are_those_of_a_reference(monkeypatch):
    made = []
    inference_session = ort.InferenceSession

    def spy(data, options, providers):
        session = inference_session(data, options, providers=providers)
        made.append((session, options))
        return session

    monkeypatch.setattr(ort, "InferenceSession", spy)
    Session(conv_model(), threads=2)
    session, options = made[0]
    assert session.get_providers() == ["CPUExecutionProvider"]
    assert options.graph_optimization_level == ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    assert options.intra_op_num_threads == 2
    assert options.log_severity_level == 4


def test_samples_run_at_once_come_out_in_order_and_equal():
    model = conv_model()
    session = Session(model)
    feeds = [{"x": np.full((1, 3, 8, 8), value, np.float32)} for value in range(9)]
    for found, feed in zip(run_each(model, feeds), feeds, strict=True):
        np.testing.assert_array_equal(found["y"], session.run(feed)["y"])


def test_samples_are_taken_as_they_start():
    taken = []

    def feeds():
        for value in range(50):
            taken.append(value)
            yield {"x": np.full((1, 3, 8, 8), value, np.float32)}

    results = run_each(conv_model(), feeds())
    next(results)
    assert len(taken) <= available_cores() + 1
    results.close()
    assert len(taken) <= available_cores() + 1


def test_a_sample_that_does_not_fit_ends_the_run():
    feeds = [{"x": np.zeros((1, 3, 8, 8), np.float32)}, {"x": np.zeros((1, 3, 9, 8), np.float32)}]
    with pytest.raises(StepError, match="input 'x'"):
        list(run_each(conv_model(), feeds))
