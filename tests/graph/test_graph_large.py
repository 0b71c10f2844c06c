"""Models of more than 2 GB, with a bound of a few kilobytes in its place."""

from __future__ import annotations

import io

import numpy as np
import onnx
import pytest
from graph_models import Builder, assert_same_floats, conv_model, op_types
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph import Session, clean, large, load, save, serialize, value_shapes, wire
from anfbuild.graph import model as model_module
from anfbuild.graph.large import is_large, skeleton
from anfbuild.graph.model import check


@pytest.fixture(autouse=True)
def low(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "MOST", 2000)
    monkeypatch.setattr(large, "HEAVY", 2000)
    monkeypatch.setattr(large, "LARGE", 1000)


def deep(opset: int = 13, ir: int = 8) -> onnx.ModelProto:
    """x (1, 16) through MatMuls, one with a weight that is transposed first, and a BatchNormalization."""
    b = Builder()
    hidden = b.node("MatMul", ["x", b.weights(16, 32)])
    hidden = b.node("MatMul", [hidden, b.node("Transpose", [b.weights(24, 32)], perm=[1, 0])])
    hidden = b.batchnorm(hidden, 24)
    shape = b.node("Shape", [hidden])
    b.node("Reshape", [hidden, shape], "y")
    model = b.model({"x": ["N", 16]}, {"y": ["N", 24]}, opset=opset, ir=ir)
    model.metadata_props.add(key="labels", value="a b")
    return model


def test_large_initializers_go_to_a_file_beside_and_come_back(tmp_path):
    model = deep()
    assert is_large(model)
    save(model, tmp_path / "m.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]
    assert len((tmp_path / "m.onnx").read_bytes()) < 2000
    loaded = load(tmp_path / "m.onnx")
    assert loaded.metadata_props == model.metadata_props
    assert [value.name for value in loaded.graph.input] == ["x"]
    assert_same_floats(model, inside(loaded), x=[1, 16])
    again = tmp_path / "again"
    again.mkdir()
    save(model, again / "m.onnx")
    for name in ("m.onnx", "m.onnx.data"):
        assert (again / name).read_bytes() == (tmp_path / name).read_bytes()


@pytest.mark.usefixtures("low")
@given(
    st.lists(st.tuples(st.sampled_from([np.float32, np.int64, np.float16]), st.integers(0, 700)), max_size=6),
    st.binary(max_size=20),
    st.booleans(),
)
def test_what_is_written_in_pieces_is_the_model(tensors, doc, fields):
    model = deep()
    model.doc_string = doc.hex()
    for number, (dtype, size) in enumerate(tensors):
        tensor = numpy_helper.from_array(np.arange(size, dtype=dtype), f"more{number}")
        if fields and dtype is np.float32:  # numbers as numbers, not as bytes
            tensor = helper.make_tensor(tensor.name, tensor.data_type, tensor.dims, np.arange(size, dtype=dtype))
        model.graph.initializer.append(tensor)
    file = io.BytesIO()
    wire.write(model, file)
    assert onnx.load_from_string(file.getvalue()) == model
    again = io.BytesIO()
    wire.write(onnx.load_from_string(file.getvalue()), again)
    assert again.getvalue() == file.getvalue()


def test_a_heavy_model_is_never_twice_in_memory(tmp_path, monkeypatch):
    model = deep()
    monkeypatch.setattr(large, "MOST", 10**6)
    monkeypatch.setattr(model_module, "serialize", lambda _: pytest.fail("all bytes at once"))
    pieces = []
    monkeypatch.setattr(wire, "write", lambda model, file, write=wire.write: write(model, Recorder(file, pieces)))
    save(model, tmp_path / "m.onnx")
    assert max(pieces) == max(len(tensor.raw_data) for tensor in model.graph.initializer)
    monkeypatch.undo()
    assert load(tmp_path / "m.onnx") == model


class Recorder:
    """A file that notes how much is written at once."""

    def __init__(self, file, sizes):
        self.file, self.sizes = file, sizes

    def write(self, data):
        self.sizes.append(len(data))
        return self.file.write(data)


def inside(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model, whose data are in it."""
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    for tensor in whole.graph.initializer:
        tensor.ClearField("data_location")
        tensor.ClearField("external_data")
    return whole


def test_a_session_reads_the_data_beside_the_file(tmp_path):
    model = deep()
    save(model, tmp_path / "m.onnx")
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 16)).astype(np.float32)}
    session = Session(tmp_path / "m.onnx", outputs=[model.graph.node[0].output[0]])
    expected = Session(model, outputs=[model.graph.node[0].output[0]]).run(feeds)
    for name, value in session.run(feeds).items():
        np.testing.assert_array_equal(value, expected[name])


@pytest.mark.parametrize("opset", [13, 17])
def test_a_large_model_is_cleaned_as_a_small_one_is(monkeypatch, opset):
    found, _, _ = clean(deep(opset), {"x": [1, 16]})
    monkeypatch.setattr(large, "MOST", 2**30)
    monkeypatch.setattr(large, "HEAVY", 2**30)
    expected, _, _ = clean(deep(opset), {"x": [1, 16]})
    assert op_types(found) == op_types(expected)
    assert value_shapes(found) == value_shapes(expected)
    assert [value.name for value in found.graph.input] == ["x"]
    assert {t.name for t in found.graph.initializer} == {t.name for t in expected.graph.initializer}
    assert found.metadata_props == expected.metadata_props
    assert_same_floats(expected, found, x=[1, 16])


def test_local_functions_of_a_large_model_are_inlined():
    model = deep(17)
    body = onnx.helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [onnx.helper.make_node("Add", ["a", "a"], ["b"])],
        [onnx.helper.make_opsetid("", 17)],
    )
    model.functions.append(body)
    model.opset_import.add(domain="own", version=1)
    model.graph.node.append(onnx.helper.make_node("Twice", ["y"], ["z"], domain="own"))
    model.graph.output[0].name = "z"
    found, _, _ = clean(model, {"x": [1, 16]})
    assert not found.functions
    assert op_types(found)[-1] == "Add"


def test_old_models_that_list_their_initializers_as_inputs():
    model = deep(8, ir=3)
    for tensor in model.graph.initializer:
        model.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    assert len(skeleton(model).graph.input) == len(model.graph.input)
    found, _, _ = clean(model, {"x": [1, 16]})
    assert [value.name for value in found.graph.input] == ["x"]


def test_bytes_that_are_not_those_of_the_shape_are_refused():
    model = deep()
    model.graph.initializer[0].raw_data += b"\0"
    with pytest.raises(StepError, match="has 2049 bytes, but its type and shape say 2048"):
        check(model, where="m")


def test_a_small_model_stays_one_file(tmp_path):
    model = conv_model()
    assert not is_large(model)
    save(model, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx").read_bytes() == serialize(model)
    # A shape that the bytes do not bear out makes no model large.
    model.graph.initializer[0].dims[0] = 10**9
    with pytest.raises(StepError, match="has 432 bytes"):
        check(model, where="m")
