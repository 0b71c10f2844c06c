"""What has to be known before a graph can be compiled: shapes and types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

import onnx
from onnx import TensorProto

from anfbuild.graph.constraints.rule import Hit, Severity, rule
from anfbuild.graph.constraints.scene import Scene
from anfbuild.graph.passes.infer_shapes import LARGEST

_OTHER_FLOATS: dict[int, str] = {
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.DOUBLE: "float64",
}


@rule(
    Severity.ERROR,
    consequence="The HTP takes fixed shapes only: a quantizer accepts the model, and its session then fails (zero "
    "graph inputs, QNN 7004). The build stops. Sizes below are worked out with the sizes proposed here.",
    remedy="Fix them in the recipe, as model.inputs.NAME.shape=[...].",
)
def open_dimension(scene: Scene) -> Iterator[Hit]:
    """An input with dimensions that nothing fixes."""
    for name, entries in groupby(scene.open, key=lambda entry: entry.input):
        left = list(entries)
        said = ", ".join(
            f"dimension {e.index} ({e.symbol or 'unnamed'}): try {' or '.join(map(str, e.proposals))}" for e in left
        )
        shape = ",".join(map(str, scene.shapes.get(name, ())))
        yield Hit(None, f"input {name!r}, {said}; model.inputs.{name}.shape=[{shape}]")
    for value in scene.source.graph.input:
        if value.name in scene.inputs and not value.type.tensor_type.HasField("shape"):
            yield Hit(None, f"input {value.name!r} states no shape at all")


@rule(
    Severity.ERROR,
    consequence="The build stops: neither the HTP nor the quantizer takes values of open size.",
    remedy="Cut the model before this node (model.outputs takes the name of any tensor), and do its work after it.",
)
def dynamic_value(scene: Scene) -> Iterator[Hit]:
    """A node whose result has no fixed size, though its inputs have one."""
    if scene.fault is not None or scene.open:  # what follows from a contradiction, or from a guess
        return
    for node in scene.nodes:
        if not scene.works(node) or not onnx.defs.has(node.op_type, node.domain):
            continue
        known = all(name in scene.shapes or name in scene.constant for name in node.reads)
        open_ = [name for name in node.outputs if name not in scene.shapes]
        if known and open_ and node.op_type not in ("If", "Loop", "Scan"):
            yield Hit(node, f"value {open_[0]!r}")


@rule(
    Severity.ERROR,
    consequence="The build stops.",
    remedy="Change the shapes of the inputs (model.inputs.*.shape), or cut that part of the model with model.outputs.",
)
def unsound_size(scene: Scene) -> Iterator[Hit]:
    """A value without elements, or one that no memory holds."""
    for node in scene.nodes:
        for name in node.outputs:
            shape = scene.shapes.get(name)
            if scene.works(node) and shape is not None and not 0 < math.prod(shape) <= LARGEST:
                yield Hit(node, f"value {name!r} of shape {list(shape)}")


@rule(
    Severity.ERROR,
    consequence="The build stops.",
    remedy="Check model.inputs.*.shape against what the model was made for.",
)
def contradicting_shapes(scene: Scene) -> Iterator[Hit]:
    """The shapes of the model do not fit together."""
    if scene.fault is not None and not scene.open:
        yield Hit(None, " ".join(str(scene.fault).split()))


@rule(
    Severity.ERROR,
    consequence="They would stay in floating point on the HTP, near float accuracy, and a quantization that did not "
    "happen would go unnoticed: the build stops.",
    remedy="Export the model in float32.",
)
def other_float(scene: Scene) -> Iterator[Hit]:
    """Values of another floating-point type than float32, which the quantizer does not take."""
    if not scene.aim.precision.quantized:
        return
    for node in scene.nodes:
        kinds = {scene.types[name] for name in node.outputs if scene.types.get(name) in _OTHER_FLOATS}
        handed_on = any(scene.types.get(name) in _OTHER_FLOATS for name in node.reads)
        if kinds and scene.works(node) and not handed_on:
            yield Hit(node, _OTHER_FLOATS[kinds.pop()])
    for name in scene.inputs:
        if scene.types.get(name) in _OTHER_FLOATS:
            yield Hit(None, f"input {name!r} is {_OTHER_FLOATS[scene.types[name]]}")


@rule(
    Severity.NOTE,
    consequence="On the emulator it computes at near float accuracy, so that its agreement says nothing about a "
    "quantized build.",
    remedy="Choose a quantization scheme; the build asserts that what was compiled computes on integers.",
)
def stays_float(scene: Scene) -> Iterator[Hit]:
    """Nothing is quantized in this precision: the whole model computes in half precision."""
    if not scene.aim.precision.quantized:
        yield Hit(None)


@rule(
    Severity.ERROR,
    consequence="It would be rounded twice, by the scheme on top of its own encodings: the build stops.",
    remedy="Keep its encodings with quantization=as_is, or give the float model that it was made from.",
)
def quantized_already(scene: Scene) -> Iterator[Hit]:
    """The model brings quantization of its own."""
    if scene.aim.precision.as_is:
        return
    if scene.encoding:
        yield Hit(scene.encoding[0], f"{len(scene.encoding)} such nodes")


@rule(
    Severity.ERROR,
    consequence="The build stops: it handles dense tensors of numbers.",
    remedy="Cut that part of the model with model.outputs, and do its work before or after the model.",
)
def no_tensor(scene: Scene) -> Iterator[Hit]:
    """An input or output that is no dense tensor of numbers."""
    for value in [*scene.source.graph.input, *scene.source.graph.output]:
        kind = value.type.WhichOneof("value")
        if kind != "tensor_type":
            yield Hit(None, f"{value.name!r} is a {kind.removesuffix('_type') if kind else 'value without a type'}")
        elif value.type.tensor_type.elem_type == TensorProto.STRING:
            yield Hit(None, f"{value.name!r} is a string tensor")
