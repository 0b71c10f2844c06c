"""A model that is quantized already, taken as it is: its own encodings, read out of it.

What is called float of such a model, in baseline and accuracy, is the model as it comes: there is no other.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import onnx

from anfbuild.errors import StepError
from anfbuild.graph.edit import GraphIndex, attribute
from anfbuild.graph.large import bits_of
from anfbuild.quantization.encodings import Encoding, Encodings

_QDQ = ("QuantizeLinear", "DequantizeLinear")
_DOMAINS = ("", "com.microsoft")
_BIAS_BITS = 32


def is_quantized(model: onnx.ModelProto) -> bool:
    """Whether a node of `model` quantizes or dequantizes."""
    return any(map(_is_qdq, model.graph.node))


def refuse_quantized(model: onnx.ModelProto) -> None:
    """Raises StepError for a model that was trained or converted with encodings: it would be rounded twice, by ours on
    top of its own."""
    if is_quantized(model):
        raise StepError(
            "the model is quantized already",
            where="quantization.scheme",
            remedy="Keep its encodings with quantization=as_is, or give the float model that it was made from.",
        )


def keep(model: onnx.ModelProto) -> Encodings:
    """The encodings of `model`, a QDQ model: of each float tensor that is quantized or comes of integers, and of each
    integer constant under its own name. Integer inputs and outputs of the graph have none: they stay as they are.

    Raises StepError for a float model, one that has encodings for its weights alone, and for an encoding that is
    computed, comes in blocks or has no integers of 8, 16 or 32 bits.
    """
    if not is_quantized(model):
        raise _not_quantized()
    index = GraphIndex(model.graph)
    activations: dict[str, Encoding] = {}
    parameters: dict[str, Encoding] = {}
    for node in filter(_is_qdq, model.graph.node):
        encoding = _encoding(index, node)
        if node.input[0] in index.constants:
            parameters.setdefault(node.input[0], encoding)
        elif node.op_type == "QuantizeLinear":
            activations.setdefault(node.input[0], encoding)
        else:
            activations.setdefault(node.output[0], encoding)
    if not activations:
        raise StepError(
            "the model has encodings for its weights alone: its activations are float",
            where="quantization.scheme",
            remedy="Take the float model that it was made from, with a scheme such as quantization=int8_per_channel.",
        )
    return Encodings(activations, parameters)


def widths(model: onnx.ModelProto) -> tuple[int, int, bool]:
    """Bits of most activations and of most weights of a QDQ model, and whether a weight has a scale for each channel.

    Types and shapes tell, so that the values may be missing. Raises StepError for a float model.
    """
    if not is_quantized(model):
        raise _not_quantized()
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    constants |= {node.output[0]: node.attribute[0].t for node in model.graph.node if node.op_type == "Constant"}
    activations: Counter[int] = Counter()
    weights: Counter[int] = Counter()
    per_channel = False
    for node in filter(_is_qdq, model.graph.node):
        integers = constants.get(node.input[0])
        if integers is not None:
            scale = constants.get(node.input[1])
            per_channel |= scale is not None and math.prod(scale.dims) > 1
            if bits_of(integers.data_type) < _BIAS_BITS:
                weights[bits_of(integers.data_type)] += 1
        elif node.op_type == "QuantizeLinear":
            zero_point = constants.get(node.input[2]) if len(node.input) > 2 else None
            stated = attribute(node, "output_dtype", 0) or onnx.TensorProto.UINT8
            activations[bits_of(stated if zero_point is None else zero_point.data_type)] += 1
    return _most(activations), _most(weights), per_channel


def _most(counts: Counter[int]) -> int:
    return counts.most_common(1)[0][0] if counts else 8


def _not_quantized() -> StepError:
    return StepError(
        "the model is a float model: it has no encodings that could be kept as they are",
        where="quantization.scheme",
        remedy="Choose another scheme, such as quantization=int8_per_channel, or a source that is quantized.",
    )


def _is_qdq(node: onnx.NodeProto) -> bool:
    return node.op_type in _QDQ and node.domain in _DOMAINS


def _encoding(index: GraphIndex, node: onnx.NodeProto) -> Encoding:
    """What the node says, its integers' type too. Raises StepError where that is not known before it runs."""
    scale = index.value(node.input[1])
    stated = len(node.input) > 2 and node.input[2] != ""
    zero_point = index.value(node.input[2]) if stated else np.zeros(1, _type(index, node))
    if (
        scale is None
        or zero_point is None
        or zero_point.dtype.kind not in "iu"
        or scale.ndim > 1
        or attribute(node, "block_size", 0)
    ):
        raise StepError(
            "the encoding of a tensor is computed, comes in blocks, or has fewer than 8 bits: it cannot be kept",
            where=f"node {node.name or node.output[0]} ({node.op_type})",
            remedy="Take the float model that it was made from, or quantize it with one scale a tensor or channel.",
        )
    scales = np.atleast_1d(scale).astype(np.float32)
    zeros = np.broadcast_to(zero_point.reshape(-1), scales.shape)
    axis = attribute(node, "axis", 1) if scales.size > 1 else None
    return Encoding(zero_point.dtype.name, tuple(scales.tolist()), tuple(int(zero) for zero in zeros), axis)


def _type(index: GraphIndex, node: onnx.NodeProto) -> str:
    """Of the integers, where no zero point says it: a QuantizeLinear says it by an attribute or makes uint8, and a
    DequantizeLinear reads a constant, or what such a QuantizeLinear makes. StepError where none of that is so."""
    if node.op_type == "QuantizeLinear":
        stated = attribute(node, "output_dtype", 0)
        return onnx.helper.tensor_dtype_to_np_dtype(stated).name if stated else "uint8"
    value, maker = index.value(node.input[0]), index.producers.get(node.input[0])
    if value is not None:
        return value.dtype.name
    if maker is not None and maker.op_type == "QuantizeLinear":
        zero_point = index.value(maker.input[2]) if len(maker.input) > 2 and maker.input[2] else None
        return zero_point.dtype.name if zero_point is not None else _type(index, maker)
    raise StepError(
        "nothing says of what type the integers are",
        where=f"node {node.name or node.output[0]} ({node.op_type})",
        remedy="Export the model with a zero point for each scale.",
    )
