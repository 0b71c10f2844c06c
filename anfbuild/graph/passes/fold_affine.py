"""Fold a constant per channel that is added to or multiplied with what a convolution or product makes or reads."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, PassResult, remove_at, text_attribute
from anfbuild.graph.linear import OPERATIONS, Affine, Linear, linear
from anfbuild.graph.normalization import batchnorm
from anfbuild.graph.provenance import Carrier, inherit
from anfbuild.graph.shapes import infer, known_shapes

# Which input may be the value: c - x and c / x are other functions, not another scale and shift.
_SIDES = {"Add": ((0, 1), (1, 0)), "Mul": ((0, 1), (1, 0)), "Sub": ((0, 1),), "Div": ((0, 1),)}


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 13 and constants to be initializers.

    Ensures that no Add, Sub, Mul or Div by a constant per channel, and no BatchNormalization in inference mode with
    constant parameters, is a neighbour of a Conv, ConvTranspose, Gemm or MatMul with constant weights, a Pad of other
    axes between them or not; except where

    - the value between the two has other readers, or is a graph output;
    - the constant is of a rank or type that would change the result's, or divides by zero, or what would come out is
      too large for the type;
    - it adds something before a convolution that pads (its zeros would have to be shifted too), before a
      ConvTranspose or MatMul, or after a MatMul whose result is not of rank 2 (there is no bias);
    - a constant Pad lies between and would have to pad each channel with another number.

    Float-equal: s(Wx + b) + c = (sW)x + (sb + c), and W(sx + c) + b = (Ws)x + (Wc + b).

    Besides the work saved, each node less is one rounding less in a quantized model; and the HTP computes a
    ConvTranspose with an Add of a constant per channel behind it wrongly.
    """
    if not any(node.op_type in OPERATIONS for node in model.graph.node):
        return PassResult("fold_affine", 0)
    folding = _Folding(model)
    nodes = list(enumerate(model.graph.node))
    folded = {position for position, node in nodes if folding.into_producer(node)}
    # The last of a chain first: only then is the one before it a neighbour.
    folded |= {p for p, node in reversed(nodes) if p not in folded and folding.into_reader(node)}
    folding.hand_on_sources()
    remove_at(model.graph.node, folded)
    return PassResult("fold_affine", len(folded), [f"folded {len(folded)} nodes"] if folded else [])


@dataclasses.dataclass(frozen=True)
class _Padding:
    """A Pad of other axes than that of the channels, and the number that it pads with; None: with values it finds."""

    node: onnx.NodeProto
    value: float | None


class _Folding:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._index = GraphIndex(model.graph)
        self._readers = {name: node for node in model.graph.node for name in node.input if name}
        """Tensor -> a node that reads it: the only one, where it has one use."""
        self._heirs: dict[str, list[Carrier]] = {}
        """Result of a linear node -> what was folded into it."""

    @functools.cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the values as they were before the pass, which changes none."""
        return known_shapes(infer(self._model))

    def into_producer(self, node: onnx.NodeProto) -> bool:
        """Fold `node` into the linear node before it; False where it must stay."""
        return any(self._fold_back(node, value, operand) for value, operand in self._readings(node))

    def into_reader(self, node: onnx.NodeProto) -> bool:
        """Fold `node` into the linear node behind it; False where it must stay."""
        return any(self._fold_on(node, value, operand) for value, operand in self._readings(node))

    def hand_on_sources(self) -> None:
        for name, carriers in self._heirs.items():
            inherit(self._index.producers[name], carriers)

    def _readings(self, node: onnx.NodeProto) -> Iterator[tuple[str, str]]:
        """The value that `node` scales or shifts, and the constant that it does it with ("": the parameters)."""
        if node.domain != "":
            return
        if node.op_type == "BatchNormalization":
            yield node.input[0], ""
        for value, operand in _SIDES.get(node.op_type, ()):
            if node.input[operand] in self._index.constants and node.input[value] not in self._index.constants:
                yield node.input[value], node.input[operand]

    def _affine(self, node: onnx.NodeProto, operand: str, channels: int, rank: int | None) -> Affine | None:
        """What `node` does to each of `channels` of a value of `rank` (None: any, the channels come last)."""
        if not operand:
            normalization = batchnorm(self._index, node)
            if rank is None and len(self._shapes.get(node.input[0], ())) != 2:
                return None
            return normalization if isinstance(normalization, Affine) and normalization.scale.size == channels else None
        constant = self._index.value(operand)
        number = None if constant is None else _per_channel(constant, channels, rank)
        if number is None or (node.op_type == "Div" and not number.all()):
            return None
        if node.op_type in ("Mul", "Div"):
            return Affine(number if node.op_type == "Mul" else 1 / number, np.zeros_like(number))
        return Affine(np.ones_like(number), number if node.op_type == "Add" else -number)

    def _fold_back(self, node: onnx.NodeProto, value: str, operand: str) -> bool:
        """Into the linear node that makes `value`."""
        between: list[_Padding] = []
        while self._index.uses[value] == 1 and (padding := self._padding(self._index.producers.get(value))):
            between.append(padding)
            value = padding.node.input[0]
        before = self._index.producers.get(value)
        target = linear(self._index, before) if before is not None and self._index.uses[value] == 1 else None
        if target is None or (between and target.rank in (None, 2)):
            return False
        affine = self._affine(node, operand, target.channels, target.rank)
        if affine is None:
            return False
        padded = [(p, p.value if p.value is None else _single(affine.scale * p.value + affine.shift)) for p in between]
        if any(new is None and padding.value is not None for padding, new in padded):
            return False
        if not target.then(affine, is_vector=self._is_vector(target)):
            return False
        self._set_values(padded, target.weights.dtype)
        self._absorb(target, node)
        last = between[0].node if between else target.node
        result, heirs = node.output[0], self._heirs.pop(value)
        self._index.rename_output(last, result)
        self._heirs[result if last is target.node else value] = heirs
        return True

    def _fold_on(self, node: onnx.NodeProto, value: str, operand: str) -> bool:
        """Into the linear node that alone reads what `node` makes."""
        between: list[_Padding] = []
        result, reader = node.output[0], self._only_reader(node.output[0])
        while padding := self._padding(reader):
            between.append(padding)
            result = padding.node.output[0]
            reader = self._only_reader(result)
        target = linear(self._index, reader) if reader is not None and reader.input[0] == result else None
        if target is None or (between and target.rank in (None, 2)):
            return False
        affine = self._affine(node, operand, target.channels_in, target.rank)
        if affine is None:
            return False
        padded = [(padding, _before(affine, padding.value)) for padding in between]
        if any(new is None and padding.value is not None for padding, new in padded):
            return False
        if not target.after(affine):
            return False
        self._set_values(padded, target.weights.dtype)
        self._absorb(target, node)
        first = between[0].node if between else target.node
        first.input[0] = value
        if self._readers.get(value) == node:
            self._readers[value] = first
        return True

    def _is_vector(self, target: Linear) -> bool:
        return target.kind == "MatMul" and len(self._shapes.get(target.node.input[0], ())) == 2

    def _only_reader(self, tensor: str) -> onnx.NodeProto | None:
        return self._readers.get(tensor) if self._index.uses[tensor] == 1 else None

    def _padding(self, node: onnx.NodeProto | None) -> _Padding | None:
        """`node` as a Pad that leaves the channels alone."""
        if node is None or node.op_type != "Pad" or node.domain != "" or len(node.input) > 3:
            return None  # with axes, which the exporters do not write
        pads = self._index.value(node.input[1])
        if pads is None or pads.size < 6 or pads[1] or pads[1 + pads.size // 2]:
            return None
        if text_attribute(node, "mode", "constant") != "constant":
            return _Padding(node, None)
        given = len(node.input) > 2 and node.input[2]
        value = self._index.value(node.input[2]) if given else np.zeros(1)
        return None if value is None else _Padding(node, float(value.reshape(())))

    def _set_values(self, padded: list[tuple[_Padding, float | None]], dtype: np.dtype) -> None:
        for padding, value in padded:
            if value is not None and value != padding.value:
                old = padding.node.input[2] if len(padding.node.input) > 2 else ""
                name = self._index.own_initializer(old, f"{padding.node.output[0]}_value", np.array(value, dtype))
                padding.node.input[2:] = [name]

    def _absorb(self, target: Linear, node: onnx.NodeProto) -> None:
        known = self._index.constants
        read = [*node.input, *target.node.input]
        heirs = self._heirs.setdefault(target.node.output[0], [])
        heirs += [node, *(known[name] for name in read if name in known and known[name].metadata_props)]


def _per_channel(constant: np.ndarray, channels: int, rank: int | None) -> np.ndarray | None:
    """`constant` as one float64 a channel, where broadcasting it over the value means that; else None."""
    if constant.ndim > (1 if rank is None else rank):
        return None
    aligned = constant if rank is None else constant.reshape((1,) * (rank - constant.ndim) + constant.shape)
    if aligned.size not in (1, channels) or (rank is not None and aligned.size != aligned.shape[1]):
        return None
    return np.broadcast_to(aligned.reshape(-1).astype(np.float64), (channels,))


def _before(affine: Affine, value: float | None) -> float | None:
    """What to pad with before `affine`, to have `value` behind it; None where there is no one such number."""
    if value is None or (value == 0 and not affine.shift.any()):
        return value
    return _single((value - affine.shift) / affine.scale) if affine.scale.all() else None


def _single(numbers: np.ndarray) -> float | None:
    """The number that all are; None where they differ."""
    return float(numbers[0]) if numbers.size and (numbers == numbers[0]).all() else None
