"""Seeded networks of ten families, small and large, whose DRAM traffic the model of blocks is judged by.

A network is fixed by its family, its seed and whether it is wide: then it is sized so that what it holds at once is
about as much as the on-chip memory or more. Weights are random; they change no shape.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


@dataclasses.dataclass(frozen=True)
class Network:
    """One network of the zoo."""

    family: str
    seed: int
    wide: bool

    @property
    def name(self) -> str:
        return f"{self.family}-{'wide' if self.wide else 'small'}-{self.seed}"

    def build(self) -> onnx.ModelProto:
        """The float model."""
        rng = np.random.default_rng([FAMILIES.index(self.family), self.seed, self.wide])
        return _FAMILIES[self.family](_Builder(rng), self.wide)


def networks(seeds: Sequence[int]) -> list[Network]:
    """Each family small and wide, for each seed."""
    return [Network(family, seed, wide) for seed in seeds for family in FAMILIES for wide in (False, True)]


class _Builder:
    """Adds nodes one behind the other; values are named by their node."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []

    def pick(self, *choices: int) -> int:
        return choices[int(self.rng.integers(len(choices)))]

    def input(self, *shape: int) -> str:
        self._inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
        return "x"

    def node(self, op_type: str, *inputs: str, **attributes: object) -> str:
        name = f"{op_type.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op_type, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        name = f"c_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(array, name))
        return name

    def weights(self, *shape: int) -> str:
        scale = math.sqrt(2 / max(1, math.prod(shape[1:])))
        return self.constant(self.rng.standard_normal(shape, dtype=np.float32) * np.float32(scale))

    def conv(
        self, x: str, given: int, made: int, kernel: int = 3, stride: int = 1, group: int = 1, relu: bool = True
    ) -> str:
        pads = [(kernel - 1) // 2] * 2 + [kernel // 2] * 2 if stride == 1 else [kernel // 2] * 4
        inputs = (x, self.weights(made, given // group, kernel, kernel), self.weights(made))
        y = self.node("Conv", *inputs, pads=pads, strides=[stride] * 2, group=group)
        return self.node("Relu", y) if relu else y

    def linear(self, x: str, given: int, made: int) -> str:
        return self.node("Add", self.node("MatMul", x, self.weights(given, made)), self.weights(made))

    def pool(self, x: str) -> str:
        return self.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])

    def double(self, x: str) -> str:
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        return self.node("Resize", x, "", scales, mode="nearest", coordinate_transformation_mode="asymmetric",
                         nearest_mode="floor")  # fmt: skip

    def norm(self, x: str, size: int) -> str:
        ones, zeros = self.constant(np.ones(size, np.float32)), self.constant(np.zeros(size, np.float32))
        return self.node("LayerNormalization", x, ones, zeros, axis=-1)

    def reshape(self, x: str, *shape: int) -> str:
        return self.node("Reshape", x, self.constant(np.array(shape, np.int64)))

    def model(self, *outputs: str) -> onnx.ModelProto:
        ends = [helper.make_empty_tensor_value_info(name) for name in outputs]
        graph = helper.make_graph(self._nodes, "zoo", self._inputs, ends, self._constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model)


def _stack(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Convolutions one behind the other, at one resolution."""
    size = b.pick(384, 512, 640) if wide else b.pick(64, 96, 128)
    channels = b.pick(24, 32, 48, 64)
    x, given = b.input(1, 3, size, size), 3
    for _ in range(b.pick(4, 6, 8)):
        x, given = b.conv(x, given, channels, b.pick(3, 3, 5, 1)), channels
    return b.model(b.conv(x, given, 4, 1, relu=False))


def _vgg(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Stages of convolutions with pools between, then wide fully connected layers."""
    size = b.pick(384, 448, 512) if wide else b.pick(96, 128, 192)
    x, given, made = b.input(1, 3, size, size), 3, b.pick(32, 48, 64)
    for _ in range(5):
        for _ in range(b.pick(1, 2)):
            x, given = b.conv(x, given, made), made
        x, made = b.pool(x), min(made * 2, 256)
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    for made in (b.pick(1024, 2048, 4096), 1000):
        x, given = b.node("Relu", b.linear(x, given, made)), made
    return b.model(x)


def _resnet(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Residual blocks of two convolutions, four stages."""
    size = b.pick(512, 640, 768) if wide else b.pick(128, 192, 224)
    made = b.pick(32, 48, 64)
    x, given = b.pool(b.conv(b.input(1, 3, size, size), 3, made, 7, 2)), made
    for stage in range(b.pick(3, 4)):
        for block in range(b.pick(1, 2, 3)):
            stride = 2 if stage and not block else 1
            y = b.conv(b.conv(x, given, made, 3, stride), made, made, relu=False)
            kept = x if given == made and stride == 1 else b.conv(x, given, made, 1, stride, relu=False)
            x, given = b.node("Relu", b.node("Add", y, kept)), made
        made *= 2
    x = b.node("Flatten", b.node("GlobalAveragePool", x))
    return b.model(b.linear(x, given, 1000))


def _mobilenet(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Inverted residuals: expand, depthwise, project."""
    size = b.pick(640, 768, 1024) if wide else b.pick(160, 192, 224)
    made = b.pick(16, 24)
    x, given = b.conv(b.input(1, 3, size, size), 3, made, 3, 2), made
    for stage in range(b.pick(3, 4, 5)):
        for block in range(b.pick(1, 2, 3)):
            stride, inner = 2 if not block else 1, given * b.pick(4, 6)
            y = b.conv(x, given, inner, 1)
            y = b.conv(y, inner, inner, b.pick(3, 5) if stage else 3, stride, group=inner)
            y = b.conv(y, inner, made, 1, relu=False)
            x, given = b.node("Add", x, y) if block else y, made
        made = made * 3 // 2 // 8 * 8
    return b.model(b.conv(x, given, 320, 1))


def _unet(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Down and up again, each level's values kept for the way up."""
    size = b.pick(512, 640, 768) if wide else b.pick(96, 128, 192)
    base, depth = b.pick(16, 24, 32), b.pick(3, 4)
    x, given = b.input(1, 3, size, size), 3
    kept: list[tuple[str, int]] = []
    for level in range(depth):
        made = base * 2**level
        x, given = b.conv(b.conv(x, given, made), made, made), made
        kept.append((x, made))
        x = b.pool(x)
    x, given = b.conv(x, given, given * 2), given * 2
    for skip, made in reversed(kept):
        x = b.node("Concat", b.double(b.conv(x, given, made, 1)), skip, axis=1)
        x, given = b.conv(x, 2 * made, made), made
    return b.model(b.node("Sigmoid", b.conv(x, given, 1, 1, relu=False)))


def _vit(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Patches, then attention and two-layer perceptrons."""
    patches, width = b.pick(24, 28, 32) if wide else b.pick(10, 14), b.pick(192, 256, 384)
    heads, tokens = width // 64, patches * patches
    patch = 16
    image = b.input(1, 3, patches * patch, patches * patch)
    x = b.node("Conv", image, b.weights(width, 3, patch, patch), b.weights(width), strides=[patch, patch])
    x = b.node("Transpose", b.reshape(x, 1, width, tokens), perm=[0, 2, 1])
    for _ in range(b.pick(2, 3, 4)):
        y = b.norm(x, width)
        q, k, v = (b.reshape(b.linear(y, width, width), 1, tokens, heads, 64) for _ in range(3))
        q, v = b.node("Transpose", q, perm=[0, 2, 1, 3]), b.node("Transpose", v, perm=[0, 2, 1, 3])
        scores = b.node("MatMul", q, b.node("Transpose", k, perm=[0, 2, 3, 1]))
        scores = b.node("Softmax", b.node("Mul", scores, b.constant(np.array(0.125, np.float32))), axis=-1)
        y = b.node("Transpose", b.node("MatMul", scores, v), perm=[0, 2, 1, 3])
        x = b.node("Add", x, b.linear(b.reshape(y, 1, tokens, width), width, width))
        y = b.node("Relu", b.linear(b.norm(x, width), width, 4 * width))
        x = b.node("Add", x, b.linear(y, 4 * width, width))
    return b.model(b.norm(x, width))


def _mlp(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Fully connected layers over rows: weights and nothing else to speak of, or many rows."""
    rows = b.pick(128, 256) if wide else b.pick(1, 16, 64)
    width = b.pick(512, 768, 1024)
    x, given = b.input(1, rows, width), width
    for _ in range(b.pick(3, 4, 5)):
        made = b.pick(width, 2 * width, 4 * width)
        x, given = b.node("Relu", b.linear(x, given, made)), made
    return b.model(b.linear(x, given, width))


def _dense(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Every layer reads all before it in its stage."""
    size = b.pick(384, 512) if wide else b.pick(96, 128)
    growth, given = b.pick(16, 24, 32), 32
    x = b.conv(b.input(1, 3, size, size), 3, given, 3, 2)
    for _ in range(b.pick(2, 3)):
        for _ in range(b.pick(3, 4, 6)):
            y = b.conv(b.conv(x, given, 4 * growth, 1), 4 * growth, growth)
            x, given = b.node("Concat", x, y, axis=1), given + growth
        x, given = b.pool(b.conv(x, given, given // 2, 1)), given // 2
    return b.model(x)


def _super(b: _Builder, wide: bool) -> onnx.ModelProto:
    """Super-resolution: residual blocks at one resolution, a long skip, then depth to space."""
    size = b.pick(256, 384, 480) if wide else b.pick(64, 96, 128)
    channels = b.pick(32, 48, 64)
    first = b.conv(b.input(1, 3, size, size), 3, channels)
    x = first
    for _ in range(b.pick(2, 4, 6)):
        x = b.node("Add", x, b.conv(b.conv(x, channels, channels), channels, channels, relu=False))
    x = b.node("Add", b.conv(x, channels, channels, relu=False), first)
    return b.model(b.node("DepthToSpace", b.conv(x, channels, 12, relu=False), blocksize=2))


def _pyramid(b: _Builder, wide: bool) -> onnx.ModelProto:
    """A detector: a backbone, a pyramid of its levels, a head at each."""
    size = b.pick(640, 768, 960) if wide else b.pick(160, 224, 256)
    made = b.pick(24, 32, 48)
    x, given = b.conv(b.input(1, 3, size, size), 3, made, 3, 2), made
    levels = []
    for _ in range(4):
        made = min(2 * given, 256)
        x, given = b.conv(b.conv(x, given, made, 3, 2), made, made), made
        levels.append((x, given))
    width, top, heads = b.pick(48, 64), "", []
    for level, channels in reversed(levels[1:]):
        side = b.conv(level, channels, width, 1, relu=False)
        top = b.node("Add", side, b.double(top)) if top else side
        heads.append(b.conv(b.conv(top, width, width), width, 24, 1, relu=False))
    return b.model(*heads)


_FAMILIES: dict[str, Callable[[_Builder, bool], onnx.ModelProto]] = {
    "stack": _stack,
    "vgg": _vgg,
    "resnet": _resnet,
    "mobilenet": _mobilenet,
    "unet": _unet,
    "vit": _vit,
    "mlp": _mlp,
    "dense": _dense,
    "super": _super,
    "pyramid": _pyramid,
}
FAMILIES = tuple(_FAMILIES)
