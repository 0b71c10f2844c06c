"""Signed 8-bit weights of integer products, made unsigned: the products stay the same integers.

On x86 without VNNI, u8 x s8 products are added in pairs in 16 bits and saturate; u8 x u8 ones do not. onnxruntime makes
the same change by `session.x64quantprecision`, but among its graph optimisations, which a reference has switched off.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.external_data_helper import uses_external_data

_PLACES = {
    "ConvInteger": (1, 3),
    "MatMulInteger": (1, 3),
    "QLinearConv": (3, 5),
    "QLinearMatMul": (3, 5),
}
"""Operator -> the inputs that are its weights and their zero point."""
_SHIFT = 128


def has_integer_products(model: onnx.ModelProto) -> bool:
    """Whether any node multiplies integers."""
    return any(node.op_type in _PLACES for node in model.graph.node)


def make_unsigned(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which the constant weights of integer products, and their zero points, are shifted from -128..127 to
    0..255. Those that something else computes, and those whose data lie beside the model, stay as they are."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    known = {tensor.name: tensor for tensor in model.graph.initializer}
    made: dict[str, onnx.TensorProto] = {}
    for node in model.graph.node:
        weights, zero_point = _PLACES.get(node.op_type, (0, 0))
        tensor = known.get(node.input[weights]) if weights and len(node.input) > weights else None
        if tensor is None or tensor.data_type != onnx.TensorProto.INT8 or uses_external_data(tensor):
            continue
        given = node.input[zero_point] if len(node.input) > zero_point else ""
        if given and given not in known:
            continue
        point = known[given] if given else numpy_helper.from_array(np.array(0, np.int8), "")
        node.input.extend([""] * (zero_point + 1 - len(node.input)))
        node.input[weights] = _shifted(tensor, tensor.name, made)
        node.input[zero_point] = _shifted(point, given or "zero", made)
    model.graph.initializer.extend(made.values())
    return model


def _shifted(tensor: onnx.TensorProto, name: str, made: dict[str, onnx.TensorProto]) -> str:
    """The name of the tensor's values plus 128, as unsigned numbers."""
    name = f"{name}/unsigned"
    values = numpy_helper.to_array(tensor).astype(np.int16) + _SHIFT
    made[name] = numpy_helper.from_array(values.astype(np.uint8), name)
    return name
