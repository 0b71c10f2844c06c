"""Which tensors of a graph are quantized, and which of them share one encoding.

Shared by the statistics, which observe only the tensors whose range decides an encoding, and by the QDQ writer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.errors import StepError

MOVES_DATA = {
    *("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Split", "Gather", "Expand", "Tile"),
    *("MaxPool", "DepthToSpace", "SpaceToDepth", "Identity"),
}
"""Operators whose float outputs hold only values of their first input (beside them: some forms of Resize and Pad)."""

FIXED_RANGES = {"Sigmoid": (0.0, 1.0), "Softmax": (0.0, 1.0), "Tanh": (-1.0, 1.0)}
"""Operators whose output range is known, and which QNN wants quantized with a step of a power of two."""

_FUSES_WITH_ACTIVATION = {
    *("Conv", "ConvTranspose", "Gemm", "MatMul", "BatchNormalization", "Add", "Sub", "Mul", "Div"),
}
_ACTIVATIONS = {"Relu", "Clip"}

_STAYS_FLOAT = {"Clip": {1, 2}, "Resize": {1, 2}, "Pad": {2}, "Dropout": {1}, "Upsample": {1}}
"""Operator -> inputs that are parameters, not data: they keep their float type in a QDQ model."""

_OTHER_FLOATS = {onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.DOUBLE}


@dataclass
class Topology:
    """The float side of a graph."""

    activations: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Every float32 tensor that is not constant, inputs first, then in node order -> its static shape."""
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    """Every initializer (views of the model's own data where it allows)."""
    producers: dict[str, onnx.NodeProto] = field(default_factory=dict)
    consumers: dict[str, list[onnx.NodeProto]] = field(default_factory=dict)
    graph_outputs: set[str] = field(default_factory=set)
    roots: dict[str, str] = field(default_factory=dict)
    """Activation -> the activation or constant whose encoding it has; itself where its own range decides."""

    @property
    def observed(self) -> list[str]:
        """The activations whose range must be seen to know all encodings, in the order of `activations`."""
        roots = set(self.roots.values())
        return [name for name in self.activations if name in roots and self.fixed_range(name) is None]

    def fixed_range(self, name: str) -> tuple[float, float] | None:
        """The range that the tensor's operator imposes, or None."""
        node = self.producers.get(name)
        return FIXED_RANGES.get(node.op_type) if node is not None else None

    def data_inputs(self, node: onnx.NodeProto) -> Iterator[tuple[int, str]]:
        """(index, name) of the float inputs that are quantized: activations, and constants that are data."""
        float_parameters = _STAYS_FLOAT.get(node.op_type, set())
        for index, name in enumerate(node.input):
            if index in float_parameters:
                continue
            if name in self.activations or (name in self.constants and self.constants[name].dtype == np.float32):
                yield index, name


def analyse(model: onnx.ModelProto) -> Topology:
    """The topology of a float model with static shapes whose constants are initializers.

    Raises StepError when shapes cannot be inferred, an activation has an open dimension or another float type than
    float32, or nothing in the model is float32.
    """
    topology = Topology(constants={t.name: numpy_helper.to_array(t) for t in model.graph.initializer})
    types = _value_types(model)
    outputs = [name for node in model.graph.node for name in node.output if name]
    for name in (*(value.name for value in model.graph.input), *outputs):
        if name not in topology.constants and name in types and _is_float32(name, types[name]):
            topology.activations[name] = _static_shape(name, types[name])
    if not topology.activations:
        raise StepError("the model has no float32 tensor: there is nothing to quantize")
    for node in model.graph.node:
        topology.producers.update((name, node) for name in node.output if name)
        for name in _all_inputs(node):
            topology.consumers.setdefault(name, []).append(node)
    topology.graph_outputs = {value.name for value in model.graph.output}
    for name in topology.activations:
        topology.roots[name] = _root(name, topology)
    return topology


def _root(name: str, topology: Topology) -> str:
    while True:
        node = topology.producers.get(name)
        if node is None:
            return name
        source = node.input[0] if node.input else ""
        if _moves_data(node, topology) and any(source == data for _, data in topology.data_inputs(node)):
            name = source
            continue
        follower = topology.consumers.get(name, [])
        if (
            node.op_type in _FUSES_WITH_ACTIVATION
            and name not in topology.graph_outputs
            and len(follower) == 1
            and follower[0].op_type in _ACTIVATIONS
            and follower[0].input[0] == name
        ):
            # What the activation clips away needs no codes, and with one encoding the pair becomes one operation.
            name = follower[0].output[0]
        return name


def _moves_data(node: onnx.NodeProto, topology: Topology) -> bool:
    if node.op_type == "Resize":
        # A linear one mixes values and leaves their range never, but for what lies outside of a crop. With another
        # encoding behind it than before it the compiler would compute it in floating point.
        mode = _attribute(node, "mode", b"nearest")
        crops = _attribute(node, "coordinate_transformation_mode", b"half_pixel") == b"tf_crop_and_resize"
        return mode in (b"nearest", b"linear") and not crops
    if node.op_type == "Pad":
        if _attribute(node, "mode", b"constant") != b"constant" or len(node.input) < 3 or not node.input[2]:
            return True
        return node.input[2] in topology.constants and not topology.constants[node.input[2]].any()
    return node.op_type in MOVES_DATA


def _attribute(node: onnx.NodeProto, name: str, default: bytes) -> bytes:
    return next((a.s for a in node.attribute if a.name == name), default)


def _all_inputs(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node reads, those that its subgraphs capture too."""
    yield from (name for name in node.input if name)
    for attribute in node.attribute:
        for graph in [*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs]:
            for inner in graph.node:
                yield from _all_inputs(inner)


def _value_types(model: onnx.ModelProto) -> dict[str, onnx.TypeProto.Tensor]:
    try:
        graph = onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True).graph
    except onnx.shape_inference.InferenceError as error:
        raise StepError(f"the shapes of the model cannot be inferred: {error}") from error
    return {
        value.name: value.type.tensor_type
        for value in (*graph.input, *graph.value_info, *graph.output)
        if value.type.HasField("tensor_type")
    }


def _is_float32(name: str, kind: onnx.TypeProto.Tensor) -> bool:
    if kind.elem_type in _OTHER_FLOATS:
        raise StepError(
            f"tensor {name!r} is {onnx.TensorProto.DataType.Name(kind.elem_type).lower()}: only float32 is quantized",
            remedy="Export the model in float32.",
        )
    return kind.elem_type == onnx.TensorProto.FLOAT


def _static_shape(name: str, kind: onnx.TypeProto.Tensor) -> tuple[int, ...]:
    if not kind.HasField("shape") or any(not dim.HasField("dim_value") for dim in kind.shape.dim):
        raise StepError(
            f"tensor {name!r} has no static shape", remedy="Give every input a fixed shape in model.inputs."
        )
    return tuple(dim.dim_value for dim in kind.shape.dim)
