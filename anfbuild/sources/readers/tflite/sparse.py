"""Sparse constants of TensorFlow Lite files, made dense."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tflite

from anfbuild.errors import StepError

LARGEST = 2**29
"""Elements of a dense constant: a few bytes can say "a tensor of gigabytes"."""

_INDEX_TYPES = {
    tflite.SparseIndexVector.Int32Vector: tflite.Int32Vector,
    tflite.SparseIndexVector.Uint16Vector: tflite.Uint16Vector,
    tflite.SparseIndexVector.Uint8Vector: tflite.Uint8Vector,
}


def densify(values: np.ndarray, shape: tuple[int, ...], sparsity: Any, name: str) -> np.ndarray:
    """The dense array of `shape` that `values` and the table `sparsity` describe.

    The table walks the dimensions in `traversal_order`, those of the blocks behind those of the tensor; each is dense,
    or lists for every position above it the indices that are there. Raises StepError where the parts do not agree.
    """
    order = [int(sparsity.TraversalOrder(i)) for i in range(sparsity.TraversalOrderLength())]
    blocks = [int(sparsity.BlockMap(i)) for i in range(sparsity.BlockMapLength())]
    rank = len(shape)
    if sorted(order) != list(range(rank + len(blocks))) or sparsity.DimMetadataLength() != len(order):
        raise _disagree(name)
    if any(not 0 <= dimension < rank for dimension in blocks) or math.prod(shape) > LARGEST:
        raise _disagree(name)
    count = 1  # branches on the level above
    coordinates: dict[int, np.ndarray] = {}
    sizes: dict[int, int] = {}
    for level, dimension in enumerate(order):
        here, parent = _descend(sparsity.DimMetadata(level), count, math.prod(shape), name)
        count = here.size
        coordinates = {known: array[parent] for known, array in coordinates.items()}
        coordinates[dimension] = here
        if dimension >= rank:
            sizes[dimension] = max(int(here.max(initial=0)) + 1, int(sparsity.DimMetadata(level).DenseSize()))
    if count != values.size:
        raise _disagree(name)
    index = [coordinates[dimension] for dimension in range(rank)]
    for block, dimension in enumerate(blocks, start=rank):
        index[dimension] = index[dimension] * sizes[block] + coordinates[block]
    if any((at < 0).any() or (at >= size).any() for at, size in zip(index, shape, strict=True)):
        raise _disagree(name)
    dense = np.zeros(shape, values.dtype)
    dense[tuple(index)] = values
    return dense


def _descend(meta: Any, count: int, most: int, name: str) -> tuple[np.ndarray, np.ndarray]:
    """One level down from `count` branches: the coordinate on this level and the parent of each, at most `most`."""
    if meta.Format() == tflite.DimensionType.DENSE:
        size = int(meta.DenseSize())
        if size < 1 or count * size > most:
            raise _disagree(name)
        return np.tile(np.arange(size), count), np.repeat(np.arange(count), size)
    segments = _indices(meta.ArraySegments(), meta.ArraySegmentsType(), name)
    indices = _indices(meta.ArrayIndices(), meta.ArrayIndicesType(), name)
    lengths = np.diff(segments)
    if len(lengths) != count or (lengths < 0).any() or segments[0] != 0 or segments[-1] != indices.size:
        raise _disagree(name)
    return indices, np.repeat(np.arange(count), lengths)


def _indices(table: Any, kind: int, name: str) -> np.ndarray:
    if table is None or kind not in _INDEX_TYPES:
        raise _disagree(name)
    vector = _INDEX_TYPES[kind]()
    vector.Init(table.Bytes, table.Pos)
    if not vector.ValuesLength():
        raise _disagree(name)
    return np.array(vector.ValuesAsNumpy(), np.int64)


def _disagree(name: str) -> StepError:
    return StepError(f"the sparse constant {name!r} is damaged: its parts do not fit together")
