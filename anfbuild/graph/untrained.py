"""Weights for a model that has none yet: what a model costs on a chip does not depend on their values."""

from __future__ import annotations

import math

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph.large import bits_of, has_data, stated_bytes

MOST = 2**33
"""Bytes of weights that are made up. A phone holds no more, and this host would have to."""
_SEED = 0
_BIAS = 0.2


def fill_weights(model: onnx.ModelProto) -> None:
    """Put random values where the data of an initializer are not in the model: beside it, or nowhere.

    Data beside the model are not looked for: its own bytes alone say what is built. The same model always gets the same
    values, of a scale at which activations neither vanish nor explode. Integers become 0. Raises StepError for weights
    of more than MOST bytes, sizes below 0 and types without a size, naming the tensor.
    """
    generator = np.random.default_rng(_SEED)
    left = MOST
    for tensor in model.graph.initializer:
        if has_data(tensor):
            continue
        left -= _checked_bytes(tensor)
        if left < 0:
            raise StepError(
                f"initializer {tensor.name!r} of shape {list(tensor.dims)} has no data in the model, and with those "
                f"before it more than the {MOST} bytes that are made up",
                remedy="Check its shape, or give a smaller model.",
            )
        tensor.CopyFrom(numpy_helper.from_array(_values(tensor, generator), tensor.name))


def _checked_bytes(tensor: TensorProto) -> int:
    if not bits_of(tensor.data_type) or any(size < 0 for size in tensor.dims):
        raise StepError(
            f"initializer {tensor.name!r} has no data in the model, and its type {tensor.data_type} and shape "
            f"{list(tensor.dims)} do not say what they would be",
            remedy="Export the model again.",
        )
    return stated_bytes(tensor)


def _values(tensor: TensorProto, generator: np.random.Generator) -> np.ndarray:
    shape = tuple(tensor.dims)
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type))
    if not np.issubdtype(dtype, np.floating):
        return np.zeros(shape, dtype)
    if len(shape) < 2:
        return (generator.random(shape) * _BIAS).astype(dtype)
    deviation = math.sqrt(2 / max(math.prod(shape[1:]), 1))
    return (generator.standard_normal(shape, dtype=np.float32) * np.float32(deviation)).astype(dtype)
