"""Loading and saving: every bad file is refused by name, good ones come back as they were."""

from __future__ import annotations

import onnx
import pytest
from google.protobuf.message import EncodeError
from graph_models import Builder, conv_model
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.errors import StepError
from anfbuild.graph import load, save, serialize
from anfbuild.graph.model import check
from anfbuild.graph.shapes import infer


def test_what_is_saved_is_loaded(tmp_path):
    model = conv_model()
    model.metadata_props.add(key="character", value="abc")
    save(model, tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx") == model


def test_saving_is_deterministic_for_maps_too(tmp_path):
    first, second = conv_model(), conv_model()
    onnx.helper.set_model_props(first, {"a": "1", "b": "2"})
    onnx.helper.set_model_props(second, {"a": "1", "b": "2"})
    save(first, tmp_path / "a.onnx")
    save(second, tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()


def test_old_models_that_list_initializers_as_inputs_are_loaded(tmp_path):
    b = Builder()
    b.node("MatMul", ["x", b.weights(2, 2)], "y")
    inputs = {"x": [1, 2], b.initializers[0].name: [2, 2]}
    model = b.model(inputs, {"y": [1, 2]}, opset=8, ir=3)
    save(model, tmp_path / "m.onnx")
    assert load(tmp_path / "m.onnx").ir_version == 3


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (None, "no such model file"),
        (b"", "empty"),
        (b"\xff" * 64, "not an ONNX file"),
        (b"this is a page of text, saved under the wrong name", "not an ONNX"),
        (onnx.ModelProto(producer_name="p").SerializeToString(), "no IR version"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path, content, says):
    path = tmp_path / "m.onnx"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StepError, match=says) as caught:
        load(path)
    assert caught.value.where == str(path)


class Unwritable:
    """What protobuf does with a model that it cannot write."""

    graph = onnx.GraphProto()

    def __init__(self, error):
        self.error = error

    def SerializeToString(self, deterministic):
        assert deterministic
        raise self.error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (EncodeError("Failed to serialize proto"), "larger than 2 GB"),
        (ValueError("too large"), "larger than 2 GB"),
        (MemoryError(), "does not fit into memory"),
    ],
)
def test_a_model_over_two_gigabytes_is_told_so_wherever_its_bytes_are_wanted(tmp_path, error, says):
    for write in (
        serialize,
        lambda model: save(model, tmp_path / "m.onnx"),
        infer,
        lambda model: check(model, where="m"),
    ):
        with pytest.raises(StepError, match=says) as caught:
            write(Unwritable(error))
        assert "smaller model" in caught.value.remedy


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(StepError, match="cannot be read"):
        load(tmp_path)


@given(cut=st.floats(0.0, 0.999))
def test_a_file_cut_short_anywhere_is_refused(tmp_path_factory, cut):
    data = serialize(conv_model())
    path = tmp_path_factory.mktemp("cut") / "m.onnx"
    path.write_bytes(data[: int(len(data) * cut)])
    with pytest.raises(StepError):
        load(path)


def test_the_checker_names_the_node(tmp_path):
    model = conv_model()
    model.graph.node[0].attribute.add(name="colour", i=1, type=onnx.AttributeProto.INT)
    path = tmp_path / "m.onnx"
    path.write_bytes(serialize(model))
    with pytest.raises(StepError, match="colour") as caught:
        load(path)
    assert caught.value.where == f"{path}, node conv (Conv)"


def external(folder, location):
    """A model in `folder` whose weights lie at `location`."""
    onnx.save(conv_model(), folder / "m.onnx", save_as_external_data=True, location="weights.bin", size_threshold=0)
    model = onnx.load(folder / "m.onnx", load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    (folder / "m.onnx").write_bytes(serialize(model))
    return folder / "m.onnx"


def test_external_data_beside_the_model_are_read_in(tmp_path):
    model = load(external(tmp_path, "weights.bin"))
    assert model.graph.initializer[0].raw_data == conv_model().graph.initializer[0].raw_data


def test_missing_external_data_are_named(tmp_path):
    with pytest.raises(StepError, match=r"nowhere\.bin") as caught:
        load(external(tmp_path, "nowhere.bin"))
    assert caught.value.where == str(tmp_path / "m.onnx")


@pytest.mark.parametrize("where", ["../weights.bin", "sub/../../weights.bin", "absolute", "link"])
def test_external_data_outside_the_folder_are_refused(tmp_path, where):
    folder = tmp_path / "model"
    folder.mkdir()
    secret = tmp_path / "weights.bin"
    secret.write_bytes(b"\0" * 4096)
    if where == "link":
        (folder / "link").symlink_to(secret)
    with pytest.raises(StepError, match="outside the model's folder"):
        load(external(folder, str(secret) if where == "absolute" else where))


@pytest.mark.parametrize("location", ["a\0b", "x" * 5000, ".", " "])
def test_external_data_at_odd_places_are_refused(tmp_path, location):
    with pytest.raises(StepError, match="external data") as caught:
        load(external(tmp_path, location))
    assert caught.value.where == str(tmp_path / "m.onnx")
    assert caught.value.remedy


def test_a_tensor_of_an_unknown_type_is_named(tmp_path):
    model = conv_model()
    model.graph.initializer[0].data_type = 77
    (tmp_path / "m.onnx").write_bytes(serialize(model))
    with pytest.raises(StepError, match=f"{model.graph.initializer[0].name!r} is of an unknown type, 77"):
        load(tmp_path / "m.onnx")


def test_data_that_are_not_as_long_as_type_and_shape_say_are_refused(tmp_path):
    b = Builder()
    constant = b.node("Constant", [], value=onnx.helper.make_tensor("v", 1, [2], b"\0" * 8, raw=True))
    b.node("Add", ["x", constant], "y")
    for change in ("dims", "type"):
        model = b.model({"x": [2]}, {"y": [2]})
        value = model.graph.node[0].attribute[0].t
        if change == "dims":
            value.dims[0] = 10**12
        else:
            value.data_type = onnx.TensorProto.FLOAT16
        (tmp_path / "m.onnx").write_bytes(serialize(model))
        with pytest.raises(StepError, match="tensor 'v' has 8 bytes, but its type and shape say"):
            load(tmp_path / "m.onnx")
