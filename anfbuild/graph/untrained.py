"""Weights for a model that has none yet: what a model costs on a chip does not depend on their values."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_SEED = 0
_BIAS = 0.2


def fill_weights(model: onnx.ModelProto) -> int:
    """Put random values where the data of an initializer lie outside of the model; how many there were.

    The same model always gets the same values, of a scale at which activations neither vanish nor explode. Integers
    become 0.
    """
    generator = np.random.default_rng(_SEED)
    outside = [tensor for tensor in model.graph.initializer if tensor.data_location == TensorProto.EXTERNAL]
    for tensor in outside:
        tensor.CopyFrom(numpy_helper.from_array(_values(tensor, generator), tensor.name))
    return len(outside)


def _values(tensor: onnx.TensorProto, generator: np.random.Generator) -> np.ndarray:
    shape = tuple(tensor.dims)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if not np.issubdtype(dtype, np.floating):
        return np.zeros(shape, dtype)
    if len(shape) < 2:
        return (generator.random(shape) * _BIAS).astype(dtype)
    deviation = math.sqrt(2 / max(math.prod(shape[1:]), 1))
    return (generator.standard_normal(shape, dtype=np.float32) * np.float32(deviation)).astype(dtype)
