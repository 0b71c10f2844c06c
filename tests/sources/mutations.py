"""Model files with something wrong in them: bytes flipped, cut off, put in, and fields edited."""

from __future__ import annotations

import functools
import io
import random
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from graph_models import Builder
from onnx import helper
from tflite_cases import identity
from tflite_files import File

from anfbuild import graph
from anfbuild.sources.archives import unpack
from anfbuild.sources.readers import Example, find_format, read

Mutation = Callable[[random.Random, bytes], bytes]


def onnx_model() -> bytes:
    """A model with a convolution, a branch, constants of several kinds and encodings."""
    b = Builder()
    hidden = b.batchnorm(b.node("Conv", ["x", b.weights(4, 3, 3, 3)], pads=[1, 1, 1, 1]), 4)
    scale, zero_point = b.constant(np.float32(0.1)), b.constant(np.uint8(7))
    stored = b.node("QuantizeLinear", [hidden, scale, zero_point])
    hidden = b.node("DequantizeLinear", [stored, scale, zero_point])
    hidden = b.node("Concat", [hidden, b.node("Relu", [hidden])], axis=1)
    hidden = b.node("Slice", [hidden, b.constant([1]), b.constant([5]), b.constant([1])])
    shape = b.node("Concat", [b.constant([1]), b.constant([-1])], axis=0)
    flat = b.node("Reshape", [hidden, shape])
    b.node("Gemm", [flat, b.node("Transpose", [b.weights(5, 256)])], "y")
    model = b.model({"x": ["N", 3, 8, 8]}, {"y": ["N", 5]}, opset=13)
    model.metadata_props.add(key="labels", value="a")
    data: bytes = model.SerializeToString()
    return data


def tflite_model() -> bytes:
    """A model with a convolution, encodings, a sparse constant, a slice and a resize."""
    file = File()
    x = file.tensor("x", (1, 4, 6, 3))
    held = identity(file, x, (1, 4, 6, 3))
    stored = file.tensor("stored", (1, 4, 6, 3), np.int8, scale=[0.1], zero_point=[4])
    file.operator("QUANTIZE", [held], [stored])
    real = file.tensor("real", (1, 4, 6, 3))
    file.operator("DEQUANTIZE", [stored], [real])
    sized = file.tensor("sized", (1, 8, 12, 3))
    size = file.constant([8, 12], np.int32)
    file.operator("RESIZE_BILINEAR", [real, size], [sized], ("ResizeBilinearOptions", {"HalfPixelCenters": True}))
    part = file.tensor("part", (1, 2, 2, 3))
    bounds = [file.constant(value, np.int32) for value in ([0, 1, 1, 0], [1, 3, 3, 3], [1, 1, 1, 1])]
    file.operator("STRIDED_SLICE", [sized, *bounds], [part], ("StridedSliceOptions", {"EndMask": 1}))
    flat = file.tensor("flat", (1, 12))
    file.operator("RESHAPE", [part, file.constant([1, 12], np.int32)], [flat])
    sparse = file.sparse([2, 5, 7], (3, 12), ([0, 1], [], [3, ([0, 1, 1, 3], [1, 0, 3])]), np.float16)
    dense, weights = file.tensor("dense", (3, 12), np.float16), file.tensor("weights", (3, 12))
    file.operator("DENSIFY", [sparse], [dense])
    file.operator("DEQUANTIZE", [dense], [weights])
    y = file.tensor("y", (1, 3))
    file.operator(
        "FULLY_CONNECTED", [flat, weights, -1], [y], ("FullyConnectedOptions", {"FusedActivationFunction": 1})
    )
    return file.write([x], [y])


def archive(kind: str) -> bytes:
    """A SavedModel's files, packed."""
    files = {"net/saved_model.pb": b"graph" * 50, "net/variables/variables.index": bytes(range(256))}
    made = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, data in files.items():
                packed.writestr(zipfile.ZipInfo(name), data)
    else:
        with tarfile.open(fileobj=made, mode="w") as plain:
            for name, data in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                plain.addfile(info, io.BytesIO(data))
    return made.getvalue()


def torch_model(kind: str) -> bytes:
    """A convolution of PyTorch, as a program or as TorchScript."""
    import torch

    net, value = torch.nn.Conv2d(3, 4, 3).eval(), torch.ones(1, 3, 8, 8)
    made = io.BytesIO()
    if kind == "pt2":
        torch.export.save(torch.export.export(net, (value,)), made)
    else:
        torch.jit.save(torch.jit.trace(net, value), made)
    return made.getvalue()


def keras_model(kind: str) -> bytes:
    """A convolution of Keras."""
    import keras

    value = keras.Input((8, 8, 3), name="input")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"m.{kind}"
        keras.Model(value, keras.layers.Conv2D(4, 3)(value)).save(path)
        return path.read_bytes()


MAKERS: dict[str, Callable[[], bytes]] = {
    "onnx": onnx_model,
    "tflite": tflite_model,
    "zip": lambda: archive("zip"),
    "tar": lambda: archive("tar"),
    "pt2": lambda: torch_model("pt2"),
    "pt": lambda: torch_model("pt"),
    "keras": lambda: keras_model("keras"),
    "h5": lambda: keras_model("h5"),
}
"""Suffix -> what makes a sound file of it. The last four take PyTorch and TensorFlow."""
ALONE = ("onnx", "tflite", "zip", "tar")
"""Those that need nothing else."""
SHAPES = {
    "onnx": {"x": [1, 3, 8, 8]},
    "tflite": {"x": [1, 4, 6, 3]},
    "pt2": {"input": [1, 3, 8, 8]},
    "pt": {"input": [1, 3, 8, 8]},
    "keras": {"input": [1, 8, 8, 3]},
    "h5": {"input": [1, 8, 8, 3]},
}


def convert(path: Path, kind: str) -> None:
    """Read the model and make it clean; an archive is unpacked. Raises AnfbuildError where it is refused."""
    if kind in ("zip", "tar"):
        find_format(path)
        with tempfile.TemporaryDirectory() as folder:
            unpack(path, Path(folder))
        return
    shapes = SHAPES[kind]
    model = read(path, {name: Example(tuple(shape), "float32") for name, shape in shapes.items()})
    graph.clean(model, shapes)


@functools.cache
def sound(kind: str) -> bytes:
    """A sound file of that kind."""
    return MAKERS[kind]()


def flip(source: random.Random, data: bytes) -> bytes:
    """A few bits are others."""
    changed = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 8, 64))):
        changed[source.randrange(len(changed))] ^= 1 << source.randrange(8)
    return bytes(changed)


def cut(source: random.Random, data: bytes) -> bytes:
    return data[: source.randrange(len(data))]


def insert(source: random.Random, data: bytes) -> bytes:
    where = source.randrange(len(data))
    return data[:where] + source.randbytes(source.randrange(1, 40)) + data[where + source.choice((0, 4)) :]


def number(source: random.Random, data: bytes) -> bytes:
    """Four bytes are a number that means trouble."""
    where = source.randrange(len(data) // 4) * 4
    value = source.choice((0, 1, 2, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFFC, 1 << 20, 1 << 28))
    return data[:where] + struct.pack("<I", value) + data[where + 4 :]


def swap(source: random.Random, data: bytes) -> bytes:
    """A run of bytes is that from elsewhere."""
    size = source.choice((4, 8, 16))
    to, out_of = (source.randrange(len(data) - size) // 4 * 4 for _ in range(2))
    return data[:to] + data[out_of : out_of + size] + data[to + size :]


def field(source: random.Random, data: bytes) -> bytes:
    """An ONNX model with a field that says something else; other formats have a number changed."""
    try:
        model = onnx.load_from_string(data)
    except Exception:  # not this format
        return number(source, data)
    graph = model.graph
    node = source.choice(graph.node)
    tensor = source.choice(graph.initializer)
    big = source.choice((0, -1, 10**6, 2**40, -(2**63)))

    def dims() -> None:
        tensor.dims[:] = [big, *tensor.dims[1:]]

    def read() -> None:
        node.input[source.randrange(len(node.input))] = source.choice(["", "nobody", node.output[0]])

    def kind() -> None:
        node.op_type = source.choice(
            ["Loop", "If", "Constant", "Resize", "LSTM", "Einsum", "NonZero", "Nothing", "Split"]
        )

    def attribute() -> None:
        node.attribute.append(helper.make_attribute(source.choice(["axis", "pads", "perm", "group", "to"]), big))

    def shape() -> None:
        graph.input[0].type.tensor_type.shape.dim[source.randrange(4)].dim_value = big

    def element() -> None:
        tensor.data_type = source.randrange(24)

    def opset() -> None:
        model.opset_import[0].version = source.choice((0, 1, 5, 9, 22, 99))

    def twice() -> None:
        node.output[0] = source.choice([other.output[0] for other in graph.node])

    def output() -> None:
        graph.output[0].name = source.choice(["x", "nobody", graph.initializer[0].name])

    def outside() -> None:
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", source.choice(["w", "../w", "/etc/passwd"])), ("offset", str(big))):
            tensor.external_data.add(key=key, value=value)

    source.choice((dims, read, kind, attribute, shape, element, opset, twice, output, outside))()
    changed: bytes = model.SerializeToString()
    return changed


MUTATIONS: tuple[Mutation, ...] = (flip, flip, cut, insert, number, number, swap, field, field)


def mutant(seed: int, kinds: Sequence[str] = ALONE) -> tuple[str, bytes]:
    """Kind and bytes of the mutant `seed`: always the same."""
    source = random.Random(seed)
    name = kinds[seed % len(kinds)]
    data = sound(name)
    for _ in range(source.choice((1, 1, 1, 2, 3))):
        if len(data) < 64:  # little is left to change
            break
        data = source.choice(MUTATIONS)(source, data)
    return name, data
