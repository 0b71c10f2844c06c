"""Write a Pad of channels as a Concat with constants."""

from __future__ import annotations

import math

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, PassResult, text_attribute
from anfbuild.graph.rewrite import Expansion, Replacements
from anfbuild.graph.shapes import infer, known_shapes, known_types

_CHANNELS = 1

LARGEST_CONSTANT = 64 * 2**20
"""Bytes of added channels: a few numbers can ask for a tensor of gigabytes."""


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 13, static input shapes and constants to be initializers.

    Ensures that no Pad adds channels (axis 1) of a constant value, except where amounts, value or shape are not
    known: these are noted. What it does to other axes stays a Pad. The same numbers: the HTP accepts a Pad of channels
    and writes garbage into it for some sizes (16 to 32, 48 to 64); a Concat is right.
    """
    found = [node for node in model.graph.node if node.op_type == "Pad" and node.domain == ""]
    if not found:
        return PassResult("lower_channel_pad", 0)
    index = GraphIndex(model.graph)
    inferred = infer(model)
    shapes, types = known_shapes(inferred), known_types(inferred)
    replacements = Replacements(index)
    notes = []
    for node in found:
        pads = _amounts(index, node, len(shapes.get(node.input[0], ())))
        value = _value(index, node, types.get(node.input[0], 0))
        if pads is None or value is None:
            notes.append(f"{node.name or node.output[0]} stays: its shape, amounts or value are not known")
        elif pads.shape[1] > _CHANNELS and (pads[:, _CHANNELS] > 0).any():
            if text_attribute(node, "mode", "constant") != "constant" or (pads[:, _CHANNELS] < 0).any():
                notes.append(f"{node.name or node.output[0]} stays: it repeats or cuts channels")
            elif _bytes(shapes[node.input[0]], pads, value) > LARGEST_CONSTANT:
                notes.append(f"{node.name or node.output[0]} stays: the channels that it adds are too large a constant")
            else:
                made = _concat(Expansion(index, node), node, shapes[node.input[0]], pads, value)
                replacements.replace(node, made.nodes)
    changed = replacements.apply()
    written = [f"wrote {changed} as Concat"] if changed else []
    return PassResult("lower_channel_pad", changed, written + notes)


def _amounts(index: GraphIndex, node: onnx.NodeProto, rank: int) -> np.ndarray | None:
    """What is added (rows: in front, behind) to each of the axes."""
    stated = index.value(node.input[1])
    has_axes = len(node.input) > 3 and node.input[3]
    axes = index.value(node.input[3]) if has_axes else np.arange(rank)
    if stated is None or axes is None or not rank:
        return None
    pads = np.zeros((2, rank), np.int64)
    pads[:, axes] = stated.reshape(2, -1)
    return pads


def _value(index: GraphIndex, node: onnx.NodeProto, kind: int) -> np.ndarray | None:
    if len(node.input) > 2 and node.input[2]:
        return index.value(node.input[2])
    return np.zeros((), onnx.helper.tensor_dtype_to_np_dtype(kind)) if kind else None


def _bytes(shape: tuple[int, ...], pads: np.ndarray, value: np.ndarray) -> int:
    sizes = [size + int(added) for size, added in zip(shape, pads.sum(axis=0), strict=True)]
    sizes[_CHANNELS] = int(pads[:, _CHANNELS].sum())
    return math.prod(sizes) * value.itemsize


def _concat(
    made: Expansion, node: onnx.NodeProto, shape: tuple[int, ...], pads: np.ndarray, value: np.ndarray
) -> Expansion:
    others = pads.copy()
    others[:, _CHANNELS] = 0
    source = node.input[0]
    if others.any():
        source = made.node(
            "Pad", [source, made.constant(others.reshape(-1), "pads"), made.constant(value.reshape(()), "value")]
        )
    sizes = np.array(shape) + others.sum(axis=0)
    parts = [source]
    for side, count in enumerate(pads[:, _CHANNELS]):
        if count:
            sizes[_CHANNELS] = count
            added = made.constant(np.full(sizes, value.reshape(()), value.dtype), "channels")
            parts = [*parts, added] if side else [added, *parts]
    made.node("Concat", parts, node.output[0], axis=_CHANNELS)
    return made
