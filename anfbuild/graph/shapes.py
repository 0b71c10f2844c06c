"""Shapes of values, open dimensions, and what a node costs in multiply-accumulates."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import onnx

from anfbuild.errors import StepError
from anfbuild.graph import growth, large
from anfbuild.graph.edit import attribute, subgraphs
from anfbuild.graph.model import serialize

# "(op_type:Conv, node name: head/conv): [ShapeInferenceError] ..."
_BAD_NODE = re.compile(r"op_type:\s*(?P<type>[^,)]+), node name:\s*(?P<name>[^)]*)\)")

_BATCH = (1,)
_CHANNELS = (1, 3)
_IMAGE = (320, 640, 960)
_SEQUENCE = (32, 64, 128)
_NAMES: tuple[tuple[tuple[int, ...], set[str], tuple[str, ...]], ...] = (
    (_BATCH, {"n", "b", "bs"}, ("batch",)),
    (_CHANNELS, {"c"}, ("channel",)),
    (_IMAGE, {"h", "w"}, ("height", "width")),
    (_SEQUENCE, {"s", "t", "l"}, ("seq", "len", "token", "time", "frame")),
)
"""Proposals, the symbols that mean them, and the words that such a symbol contains."""


@dataclasses.dataclass(frozen=True)
class OpenDimension:
    """A dimension of an input that the model leaves to whoever runs it."""

    input: str
    index: int
    symbol: str
    """The model's own name for it; empty when it has none."""
    proposals: tuple[int, ...]
    """Sensible sizes, the preferred one last: what the symbol is elsewhere; batch 1; multiples of 32, which suit
    strided networks and HTP tiles."""


def input_values(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that are fed: IR 3 lists the initializers as inputs too."""
    initializers = {tensor.name for tensor in model.graph.initializer}
    return [value for value in model.graph.input if value.name not in initializers]


def interface(model: onnx.ModelProto) -> dict[str, dict[str, dict[str, Any]]]:
    """`{"inputs" | "outputs": {name: {"shape": [...], "dtype": "float32"}}}` of a model whose shapes are static."""
    return {
        side: {
            value.name: {
                "shape": [dim.dim_value for dim in value.type.tensor_type.shape.dim],
                "dtype": onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type).name,
            }
            for value in values
        }
        for side, values in (("inputs", input_values(model)), ("outputs", model.graph.output))
    }


def open_dimensions(model: onnx.ModelProto, symbols: Mapping[str, int] | None = None) -> list[OpenDimension]:
    """Every dimension of every input that has no fixed size, in the order of the model.

    `symbols` are sizes that some symbols have elsewhere: they are proposed for the others of that name.
    """
    known = symbols or {}
    return [
        OpenDimension(
            *(value.name, index, dim.dim_param),
            (known[dim.dim_param],) if dim.dim_param in known else _proposals(value, index),
        )
        for value in input_values(model)
        for index, dim in enumerate(value.type.tensor_type.shape.dim)
        if not is_static(dim)
    ]


def is_static(dim: onnx.TensorShapeProto.Dimension) -> bool:
    """Whether the size of `dim` is fixed. Some exporters write -1 or 0 for "any"."""
    return bool(dim.HasField("dim_value")) and dim.dim_value > 0


def infer(model: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """A copy of `model` in which onnx's shape inference, values of small integer tensors included, wrote value_info.

    com.microsoft's QuantizeLinear and DequantizeLinear are seen through. Of a heavy model, a copy of its
    skeleton. Raises StepError for a row of numbers that would take all memory (`growth`), and with `strict` one that
    names the node whose shapes contradict each other.
    """
    if large.is_heavy(model):
        model = large.skeleton(model)
    inferred = _infer(model, strict)
    if any(map(_is_microsoft_qdq, model.graph.node)):
        _add_values(inferred, _infer(_with_standard_qdq(inferred), False))
    return inferred


def _infer(model: onnx.ModelProto, strict: bool) -> onnx.ModelProto:
    data = serialize(model)
    try:
        if growth.may_grow(model):
            stated = onnx.shape_inference.infer_shapes(data)
            growth.refuse(stated, _all_shapes(stated.graph))
        return _propagate(data, strict=strict)
    except (onnx.shape_inference.InferenceError, ValueError) as error:
        text = " ".join(str(error).split())
        node = _BAD_NODE.search(text)
        raise StepError(
            f"shapes do not fit together: {_first_cause(text)}",
            where=f"node {node['name'].strip() or '(unnamed)'} ({node['type'].strip()})" if node else None,
            remedy="Check model.inputs.*.shape against what the model was made for.",
        ) from error


def _propagate(data: bytes, *, strict: bool) -> onnx.ModelProto:
    try:
        return onnx.shape_inference.infer_shapes(data, strict_mode=strict, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        if "already exists" not in str(error):
            raise
    # onnx trips over its own notes where both branches of an If read one constant. Judge without values, then infer.
    onnx.shape_inference.infer_shapes(data, strict_mode=strict)
    return onnx.shape_inference.infer_shapes(data, data_prop=True)


def _all_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Those of its subgraphs too."""
    shapes: dict[str, tuple[int, ...]] = {}
    for node in graph.node:
        for inner in subgraphs(node):
            shapes |= _all_shapes(inner)
    return shapes | _stated_shapes(graph)


def _first_cause(text: str) -> str:
    """What is wrong at the first node; all nodes behind it complain as well."""
    said = [part.replace("Inference error(s):", "") for part in re.split(r"\(op_type:[^)]*\):", text)]
    causes = [re.sub(r"\[\w+\]", "", part).strip() for part in said]
    return next((cause for cause in causes if cause), text)


def is_known(kind: onnx.TypeProto | None) -> bool:
    """Whether `kind` is that of a tensor whose every dimension is stated."""
    if kind is None or not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return False
    return all(dim.HasField("dim_value") and dim.dim_value >= 0 for dim in kind.tensor_type.shape.dim)


def known_shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Name -> shape, for the values whose every dimension the model states, nothing inferred."""
    return _stated_shapes(model.graph)


def _stated_shapes(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    shapes = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        if is_known(value.type):
            shapes.setdefault(value.name, tuple(dim.dim_value for dim in value.type.tensor_type.shape.dim))
    return shapes


def known_types(model: onnx.ModelProto) -> dict[str, int]:
    """Name -> TensorProto.DataType, for the values of the main graph whose type the model states."""
    graph = model.graph
    types = {tensor.name: tensor.data_type for tensor in graph.initializer}
    for value in [*graph.input, *graph.value_info, *graph.output]:
        if value.type.tensor_type.elem_type:
            types[value.name] = value.type.tensor_type.elem_type
    return types


def value_shapes(model: onnx.ModelProto) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every input, initializer and node output of the main graph (() is a scalar).

    Shapes that the model does not state are inferred, those of com.microsoft's QuantizeLinear and DequantizeLinear
    too. Raises StepError naming the first node and value whose shape is not static.
    """
    shapes = known_shapes(model)
    if next(_unknown(model, shapes), None) is not None:
        shapes = known_shapes(infer(model)) | shapes
    for node, name in _unknown(model, shapes):
        raise StepError(
            f"value {name!r} has no static shape",
            where=f"node {node.name or '(unnamed)'} ({node.op_type})",
            remedy="Cut the model before this node (model.outputs takes the name of any tensor), and do its work after "
            "the model.",
        )
    return shapes


def node_macs(model: onnx.ModelProto) -> dict[str, int]:
    """Node name -> multiply-accumulates of one run; 0 for operators that do none to speak of.

    Conv: output elements x input channels of a group x kernel elements (taps that fall on padding count, as is usual).
    ConvTranspose: input elements x output channels of a group x kernel elements.
    Gemm, MatMul: output elements x length of the summed axis.
    A 3x3 convolution, 256 to 256 channels, 112x112: 112 x 112 x 256 x 256 x 9 = 7.40e9, that is 14.8 GFLOP.

    Raises StepError when a shape is not static, or when node names are missing or repeated.
    """
    shapes = value_shapes(model)
    macs: dict[str, int] = {}
    for node in model.graph.node:
        if not node.name or node.name in macs:
            raise StepError(
                f"a {node.op_type} node has {'the name of another' if node.name else 'no name'}: {node.name!r}",
                remedy="Clean the model first: it gives every node a name of its own.",
            )
        macs[node.name] = _macs(node, shapes)
    return macs


def _macs(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> int:
    if node.domain not in ("", "ai.onnx"):
        return 0
    if node.op_type == "Conv":  # weights: (output channels, input channels of a group, kernel...)
        return math.prod(shapes[node.output[0]]) * math.prod(shapes[node.input[1]][1:])
    if node.op_type == "ConvTranspose":  # weights: (input channels, output channels of a group, kernel...)
        return math.prod(shapes[node.input[0]]) * math.prod(shapes[node.input[1]][1:])
    if node.op_type == "Gemm":
        return math.prod(shapes[node.output[0]]) * shapes[node.input[0]][0 if attribute(node, "transA", 0) else 1]
    if node.op_type == "MatMul":
        return math.prod(shapes[node.output[0]]) * shapes[node.input[0]][-1]
    return 0


def _unknown(model: onnx.ModelProto, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[onnx.NodeProto, str]]:
    return ((node, name) for node in model.graph.node for name in node.output if name and name not in shapes)


def _is_microsoft_qdq(node: onnx.NodeProto) -> bool:
    return node.domain == "com.microsoft" and node.op_type in ("QuantizeLinear", "DequantizeLinear")


def _with_standard_qdq(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which com.microsoft's Q and DQ, of whose shapes onnx knows nothing, are the standard ones."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in filter(_is_microsoft_qdq, copy.graph.node):
        node.domain = ""
    return copy


def _add_values(model: onnx.ModelProto, source: onnx.ModelProto) -> None:
    """Let `model` state of its values what only `source` knows."""
    known = {value.name for value in model.graph.value_info}
    model.graph.value_info.extend(value for value in source.graph.value_info if value.name not in known)
    for value, other in zip(model.graph.output, source.graph.output, strict=True):
        if not value.type.tensor_type.HasField("shape"):
            value.type.CopyFrom(other.type)


def _proposals(value: onnx.ValueInfoProto, index: int) -> tuple[int, ...]:
    """By the name of the dimension, else by its place."""
    dims = value.type.tensor_type.shape.dim
    symbol = dims[index].dim_param.lower()
    for proposals, symbols, words in _NAMES:
        if symbol in symbols or any(word in symbol for word in words):
            return proposals
    if index == 0:
        return _BATCH
    if len(dims) < 4:
        return _SEQUENCE
    channels_last = is_static(dims[-1]) and dims[-1].dim_value in (1, 3, 4)
    return _CHANNELS if index == 1 and not channels_last else _IMAGE
