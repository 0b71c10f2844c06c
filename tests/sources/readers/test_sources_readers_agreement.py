"""Models of PyTorch and TensorFlow compute the same as ONNX, and a file that could run code is refused."""

from __future__ import annotations

import io
import json
import pickle
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from extras import needed

from anfbuild import graph, plugins
from anfbuild.errors import StepError
from anfbuild.sources import fetch
from anfbuild.sources.readers import Example, read

pytestmark = pytest.mark.full

TOLERANCE = 3e-3
"""Of the range of an output."""


def agree(model: onnx.ModelProto, values: Mapping[str, np.ndarray], wanted: list[np.ndarray]) -> None:
    """The model, made clean for the shapes of `values`, gives what is `wanted`."""
    clean = graph.clean(model, {name: list(value.shape) for name, value in values.items()}).model
    found = list(graph.Session(clean).run(dict(values)).values())
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, atol=TOLERANCE * max(float(np.ptp(other)), 1e-6), rtol=0)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


# ---- PyTorch


@pytest.fixture(scope="module")
def torch() -> Any:
    return needed("torch")


@pytest.fixture(scope="module")
def nets(torch: Any) -> dict[str, tuple[Any, dict[str, np.ndarray]]]:
    """Name -> module and the values of its arguments, in their order."""
    nn = torch.nn
    torch.manual_seed(0)

    class Depthwise(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish())
            self.depth = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.BatchNorm2d(8), nn.ReLU6())
            self.last = nn.Linear(8, 5)

        def forward(self, image):
            return self.last(self.depth(self.first(image)).mean((2, 3))).softmax(-1)

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(50, 16), nn.LayerNorm(16)
            self.mix, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
            self.last = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))

        def forward(self, tokens):
            x = self.embed(tokens)
            q, k, v = self.mix(self.norm(x)).reshape(1, 10, 3, 4, 4).permute(2, 0, 3, 1, 4).unbind(0)
            y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.out(y.transpose(1, 2).reshape(1, 10, 16))
            return x + self.last(x)

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = nn.Linear(6, 4), nn.Conv1d(2, 4, 3)

        def forward(self, left, right):
            mixed = self.left(left) * self.right(right).mean(-1)
            return torch.tanh(mixed), mixed.sum(-1, keepdim=True)

    return {
        "depthwise": (Depthwise().eval(), {"image": random(1, 3, 16, 16)}),
        "attention": (Attention().eval(), {"tokens": np.arange(10, dtype=np.int64)[None]}),
        "two": (Two().eval(), {"left": random(1, 6), "right": random(1, 2, 9)}),
    }


def torch_answers(torch: Any, net: Any, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    with torch.no_grad():
        found = net(*(torch.from_numpy(value) for value in values.values()))
    return [one.numpy() for one in (found if isinstance(found, tuple) else (found,))]


def examples(values: Mapping[str, np.ndarray]) -> dict[str, Example]:
    return {name: Example(value.shape, value.dtype.name) for name, value in values.items()}


@pytest.mark.parametrize("name", ["depthwise", "attention", "two"])
@pytest.mark.parametrize("way", ["trace", "script", "program"])
def test_pytorch_agrees(torch: Any, nets: Any, tmp_path: Path, name: str, way: str) -> None:
    net, values = nets[name]
    tensors = tuple(torch.from_numpy(value) for value in values.values())
    path = tmp_path / ("m.pt2" if way == "program" else "m.pt")
    if way == "program":
        torch.export.save(torch.export.export(net, tensors), path)
    else:
        made = torch.jit.trace(net, tensors) if way == "trace" else torch.jit.script(net)
        torch.jit.save(made, str(path))
    agree(read(path, examples(values)), values, torch_answers(torch, net, values))
    assert sys.modules.get("tensorflow") is None


DISTRIBUTION = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3)

    def forward(self, image, scale=None):
        return self.conv(image).relu()

def program():
    return torch.export.export(Net().eval(), (torch.zeros(1, 3, 8, 8),))

def other():
    return "no model"

def broken():
    raise OSError("no such weights")
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    (folder / "mine.dist-info").mkdir(parents=True)
    (folder / "mine_nets.py").write_text(DISTRIBUTION)
    (folder / "mine.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = "".join(f"{name} = mine_nets:{name}\n" for name in ("Net", "program", "other", "broken"))
    (folder / "mine.dist-info" / "entry_points.txt").write_text(f"[anfbuild.models]\n{points}")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    plugins.installed.cache_clear()
    yield folder
    plugins.installed.cache_clear()


@pytest.mark.usefixtures("torch", "installed")
def test_an_installed_module_is_traced_and_a_program_taken_as_it_is(tmp_path: Path) -> None:
    outputs = []
    for name in ("Net", "program"):
        path = fetch("module", name=name, folder=tmp_path / name)
        model = read(path, {"image": Example((1, 3, 8, 8), "float32")}, name)
        clean = graph.clean(model, {"image": [1, 3, 8, 8]}).model
        outputs.append(next(iter(graph.Session(clean).run({"image": random(1, 3, 8, 8)}).values())).shape)
    assert outputs == [(1, 4, 6, 6)] * 2


@pytest.mark.usefixtures("torch", "installed")
@pytest.mark.parametrize(
    ("name", "inputs", "says"),
    [
        ("Net", {"picture": Example((1, 3, 8, 8), "float32")}, "the model's inputs are image, scale, the recipe's pic"),
        ("Net", {}, "the recipe's none"),
        ("Net", {"image": Example((1, 5, 8, 8), "float32")}, "PyTorch cannot trace the module"),
        ("other", {}, "is of type str"),
        ("broken", {}, "the plug-in 'broken' cannot be loaded|no such weights"),
    ],
)
def test_a_module_that_does_not_fit_is_refused(
    tmp_path: Path, name: str, inputs: dict[str, Example], says: str
) -> None:
    path = fetch("module", name=name, folder=tmp_path)
    with pytest.raises(StepError, match=says) as caught:
        read(path, inputs, name)
    assert caught.value.where == str(path)
    assert caught.value.remedy


@pytest.fixture(scope="module")
def program(torch: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with an open batch, so that its dimensions are said by expressions."""
    path = tmp_path_factory.mktemp("program") / "m.pt2"
    dynamic = {"input": {0: torch.export.Dim("batch", min=1, max=64)}}
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),), dynamic_shapes=dynamic), path)
    return path


def rewritten(path: Path, target: Path, change: dict[str, Any]) -> Path:
    """The archive with members changed: name's end -> function of the bytes, or the bytes of a new one."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            for end, edit in change.items():
                if info.filename.endswith(end):
                    data = edit(data)
            new.writestr(info.filename, data)
    return target


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return exec, ("open('/tmp/anfbuild-evil', 'w')",)


def test_a_program_cannot_run_code(program: Path, tmp_path: Path) -> None:
    def expression(data: bytes) -> bytes:
        assert b'"expr_str": "' in data
        return data.replace(b'"expr_str": "', b'"expr_str": "open(chr(47)+str(1)) + ')

    def inputs(_: bytes) -> bytes:
        return pickle.dumps((Evil(),))

    def constants(data: bytes) -> bytes:
        config = json.loads(data)
        config["config"]["c"] = {
            "path_name": "opaque_obj_0",
            "is_param": False,
            "use_pickle": True,
            "tensor_meta": None,
        }
        return json.dumps(config).encode()

    marker = Path("/tmp/anfbuild-evil")
    for number, change in enumerate(({"models/model.json": expression}, {"sample_inputs/model.pt": inputs})):
        path = rewritten(program, tmp_path / f"{number}.pt2", change)
        assert path.read_bytes() != program.read_bytes()
        with pytest.raises(StepError) as caught:
            read(path)
        assert caught.value.where == str(path)
        assert number or "which is no arithmetic" in caught.value.what
    path = rewritten(program, tmp_path / "2.pt2", {"model_constants_config.json": constants})
    with zipfile.ZipFile(program) as archive:
        prefix = archive.namelist()[0].partition("/")[0]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"{prefix}/data/constants/opaque_obj_0", pickle.dumps(Evil()))
    with pytest.raises(StepError) as caught:
        read(path)
    assert not marker.exists()


def test_torchscript_that_does_not_fit_is_refused(torch: Any, nets: Any, tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    torch.jit.save(torch.jit.script(nets["two"][0]), str(path))
    with pytest.raises(StepError, match="the model's inputs are left, right, the recipe's left") as caught:
        read(path, {"left": Example((1, 6), "float32")})
    assert caught.value.choices == ["left", "right"]
    (tmp_path / "cut.pt").write_bytes(path.read_bytes()[:-700])
    with pytest.raises(StepError) as cut:
        read(tmp_path / "cut.pt")
    assert cut.value.where == str(tmp_path / "cut.pt")
    rewritten(
        path, tmp_path / "code.pt", {"code/__torch__/___torch_mangle": lambda data: data, ".py": lambda _: b"def ("}
    )
    with pytest.raises(StepError, match="PyTorch cannot load the TorchScript archive"):
        read(tmp_path / "code.pt", examples(nets["two"][1]))


# ---- TensorFlow


@pytest.fixture(scope="module")
def tensorflow() -> Any:
    return needed("tensorflow")


def keras_nets(tf: Any) -> dict[str, tuple[Any, dict[str, np.ndarray]]]:
    keras, layers = tf.keras, tf.keras.layers
    keras.utils.set_random_seed(0)
    image = keras.Input((16, 16, 3), name="image")
    x = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(8, 3, 2, "same", use_bias=False)(image)))
    x = layers.GlobalAveragePooling2D()(layers.Activation("hard_silu")(layers.DepthwiseConv2D(3, padding="same")(x)))
    conv = keras.Model(image, layers.Dense(5, "softmax", name="probabilities")(x))
    tokens = keras.Input((10,), dtype="int32", name="tokens")
    x = layers.Embedding(50, 16)(tokens)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 4)(x, x))
    attention = keras.Model(tokens, layers.Dense(16, "gelu", name="hidden")(x))
    left, right = keras.Input((6,), name="left"), keras.Input((9, 2), name="right")
    mixed = layers.Dense(4)(left) * layers.GlobalAveragePooling1D()(layers.Conv1D(4, 3)(right))
    two = keras.Model([left, right], [layers.Dense(3, "tanh", name="one")(mixed), layers.Dense(2, name="two")(mixed)])
    return {
        "conv": (conv, {"image": random(1, 16, 16, 3)}),
        "attention": (attention, {"tokens": np.arange(10, dtype=np.int32)[None]}),
        "two": (two, {"left": random(1, 6), "right": random(1, 9, 2)}),
    }


def keras_answers(net: Any, values: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    found = net(list(values.values()) if len(values) > 1 else next(iter(values.values())), training=False)
    return [np.asarray(one) for one in (found if isinstance(found, list | tuple) else [found])]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("conv", "m.keras"),
        ("conv", "m.h5"),
        ("conv", "m.tar.gz"),
        ("attention", "m.keras"),
        ("attention", "folder"),
        ("two", "m.keras"),
        ("two", "folder"),
    ],
)
def test_tensorflow_agrees(tensorflow: Any, tmp_path: Path, name: str, file: str) -> None:
    net, values = keras_nets(tensorflow)[name]
    path = tmp_path / file
    if path.suffix in (".keras", ".h5"):
        net.save(path)
    else:
        net.export(tmp_path / "folder", verbose=False)
        if file != "folder":
            with tarfile.open(path, "w:gz") as archive:
                archive.add(tmp_path / "folder", "net")
    model = read(path)
    names = [output.name for output in model.graph.output]
    if path.suffix == ".keras":
        assert names == {"conv": ["probabilities"], "attention": ["hidden"], "two": ["one", "two"]}[name]
    agree(model, values, keras_answers(net, values))


def test_keras_code_is_refused(tensorflow: Any, tmp_path: Path) -> None:
    layers = tensorflow.keras.layers
    net = tensorflow.keras.Sequential([tensorflow.keras.Input((3,)), layers.Lambda(lambda x: x * 2)])
    for name in ("m.keras", "m.h5"):
        net.save(tmp_path / name)
        with pytest.raises(StepError, match="Keras cannot load the model") as caught:
            read(tmp_path / name)
        assert caught.value.where == str(tmp_path / name)


@pytest.mark.usefixtures("tensorflow")
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("m.keras", b"PK\x03\x04 no archive", "Keras cannot load"),
        ("m.h5", b"\x89HDF\r\n\x1a\n no file", "Keras cannot load"),
        ("saved_model.pb", b"no protobuf", "TensorFlow cannot load"),
        ("m.tar", b"no archive", "cannot be unpacked"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(StepError, match=says) as caught:
        read(path)
    assert caught.value.where == str(path)


@pytest.mark.usefixtures("tensorflow")
def test_an_archive_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "m.tar", "w") as archive:
        info = tarfile.TarInfo("../../saved_model.pb")
        archive.addfile(info, io.BytesIO())
    with pytest.raises(StepError, match="leads out of its folder"):
        read(tmp_path / "m.tar")
