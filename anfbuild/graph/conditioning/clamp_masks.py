"""Clamp the huge constants with which attention masks hide positions from a Softmax."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import onnx

from anfbuild.graph.conditioning.result import Conditioned, Rewrite, number
from anfbuild.graph.edit import GraphIndex, attribute, place, remove_at, subgraphs, used_names
from anfbuild.graph.shapes import known_shapes, known_types

HUGE = 9000.0
"""From this magnitude on a number is a mask: exporters write 1e4, 65504, 1e9, 3.4e38 and infinity; a bias by distance
(ALiBi), whose differences count, stays below."""

# Operators whose results hold values of their first input, or zeros, and nothing else.
_MOVE = {"Expand", "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Slice", "Gather", "Tile", "Identity", "Flatten"}
_MOVE |= {"Split", "Trilu"}
CARRIES = _MOVE | {"Add", "Sub", "Mul", "Neg", "Concat", "Where", "Cast"}
"""Operators that may lie between a mask's constant and the Softmax."""
_FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}


def run(model: onnx.ModelProto, bound: float) -> Conditioned:
    """Requires constants to be initializers, static shapes that the model states, and opset 13; `bound` below 0.

    Ensures that no constant below `bound` is added to, subtracted from or put in the place of (Where) the scores of a
    Softmax over the last axis, directly or by a factor of whole numbers (the 1 - mask of exporters); except where
    something else than such a Softmax reads what comes of it, where the constant has numbers between `bound` and -9000,
    which are no mask, or hides a whole row: these are noted.

    Float-equal in what the Softmax returns, while the scores of a row that are not hidden lie within about
    -bound - 16 of one another: e^bound more or less does not reach the last bit of a float32. A row of which a computed
    mask hides everything, whose result means nothing, comes out as another one.

    A quantized model has to represent the sum of scores and mask. With -3.4e38 in its range there is one code left for
    all scores: docs/recipes.md has what that costs a language model.
    """
    nodes = [node for node in model.graph.node if node.op_type == "Softmax" and node.domain == ""]
    return _Clamping(model, bound).run() if nodes else Conditioned()


@dataclasses.dataclass(frozen=True)
class _Reading:
    """Input `position` of `node`."""

    node: onnx.NodeProto
    position: int


class _Clamping:
    def __init__(self, model: onnx.ModelProto, bound: float) -> None:
        self._graph = model.graph
        self._bound = bound
        self._index = GraphIndex(model.graph)
        self._shapes = known_shapes(model)
        self._types = known_types(model)
        self._outputs = {value.name for value in model.graph.output}
        self._captured = {name for node in model.graph.node if any(subgraphs(node)) for name in used_names(node)}
        self._readings: dict[str, list[_Reading]] = {}
        for node in model.graph.node:
            for position, name in enumerate(node.input):
                self._readings.setdefault(name, []).append(_Reading(node, position))
        self._faults: dict[tuple[str, int], str | None] = {}
        """(Tensor, sign) -> why hidden positions in it, times the sign, must stay as they are; None: they need not."""

    def run(self) -> Conditioned:
        done = Conditioned()
        huge = [(name, sign) for name in self._index.constants for sign in (1, -1) if self._hides(name, sign)]
        if huge:
            self._find_faults()
        for name, sign in huge:
            self._clamp(name, sign, done)
        if done.rewrites:
            uses = self._index.uses
            unread = [p for p, tensor in enumerate(self._graph.initializer) if not uses[tensor.name]]
            remove_at(self._graph.initializer, unread)
        return done

    def _hides(self, name: str, sign: int) -> bool:
        if self._index.constants[name].data_type not in _FLOATS:
            return False
        value = self._index.value(name)
        return value is not None and value.size > 0 and bool((value * sign).min() <= -HUGE)

    def _clamp(self, name: str, sign: int, done: Conditioned) -> None:
        """Let the readings of the constant `name` that end in a Softmax read a clamped one."""
        value = np.asarray(self._index.value(name))
        signed = value * sign
        clamped = None
        for reading in self._readings.get(name, ()):
            fault = self._fault_of_value(signed) or self._fault_of_reading(reading, sign)
            if fault:
                done.notes.append(f"{number(signed.min() * sign)} stays at {place(reading.node)}: {fault}")
                continue
            if clamped is None:
                kept = np.where(signed <= -HUGE, self._bound, signed) * sign
                clamped = self._index.add_initializer(f"{name}_clamped", kept.astype(value.dtype))
            reading.node.input[reading.position] = clamped
            self._index.uses.update({clamped: 1, name: -1})
            done.rewrites.append(
                Rewrite(
                    "mask_clamp",
                    reading.node.name,
                    reading.node.op_type,
                    number(signed.min() * sign),
                    self._bound * sign,
                )
            )

    def _fault_of_value(self, signed: np.ndarray) -> str | None:
        hidden = signed <= -HUGE
        if (~hidden & (signed < self._bound)).any():
            return f"the constant has numbers between {self._bound:g} and {-HUGE:g} too"
        if signed.ndim and signed.shape[-1] > 1 and hidden.all(axis=-1).any():
            return "the constant hides a whole row"
        return None

    def _find_faults(self) -> None:
        """Fill the table from the end of the graph, so that of each tensor the readers are known already."""
        for node in reversed(self._graph.node):
            for name in node.output:
                for sign in (1, -1):
                    self._faults[name, sign] = self._fault_of_tensor(name, sign)

    def _fault_of_tensor(self, tensor: str, sign: int) -> str | None:
        if tensor in self._outputs:
            return f"{tensor} is an output"
        if tensor in self._captured:
            return f"a subgraph reads {tensor}"
        return next(filter(None, (self._fault_of_reading(r, sign) for r in self._readings.get(tensor, ()))), None)

    def _fault_of_reading(self, reading: _Reading, sign: int) -> str | None:
        """Why the hidden positions that the node reads must stay as they are; None where they end in a Softmax."""
        node, position = reading.node, reading.position
        kind = node.op_type if node.domain == "" else ""
        if kind == "Softmax":
            if sign < 0:
                return f"{place(node)} sees it as a large score"
            return None if self._is_over_last_axis(node) else f"{place(node)} is not over the last axis"
        new = self._sign_behind(node, position, kind) * sign
        if not new:
            return f"{place(node)} reads it, not a Softmax alone"
        return next(filter(None, (self._faults[name, new] for name in node.output if name)), None)

    def _sign_behind(self, node: onnx.NodeProto, position: int, kind: str) -> int:
        """By what the node multiplies the hidden positions of this input: 1 or -1; 0 where it does something else."""
        if kind == "Mul":
            low, high = self._whole.get(node.input[1 - position], (-1.0, 1.0))
            return 1 if low >= 0 else -1 if high <= 0 else 0
        if kind == "Neg" or (kind == "Sub" and position == 1):
            return -1
        follows = (
            kind in ("Add", "Sub", "Concat")
            or (kind == "Where" and position > 0)
            or (kind in _MOVE and position == 0)
            or (kind == "Cast" and self._types.get(node.output[0]) in _FLOATS)
        )
        return int(follows)

    def _is_over_last_axis(self, node: onnx.NodeProto) -> bool:
        axis = attribute(node, "axis", -1)
        return axis == -1 or axis == len(self._shapes.get(node.input[0], ())) - 1

    @functools.cached_property
    def _whole(self) -> dict[str, tuple[float, float]]:
        """The tensors that hold whole numbers whatever the inputs are, so that nothing is hidden in part -> least and
        greatest. What is cast from integers is taken for a mask of 0 and 1."""
        found: dict[str, tuple[float, float]] = {}

        def of(name: str) -> tuple[float, float] | None:
            if name not in found and self._index.constants.get(name) is not None:
                value = np.asarray(self._index.value(name), np.float64)
                if value.size and np.array_equal(value, np.round(value)):
                    found[name] = (float(value.min()), float(value.max()))
            return found.get(name)

        for node in self._graph.node:
            if node.domain != "" or node.op_type not in _MOVE | {"Cast", "Sub"}:
                continue
            first = of(node.input[0])
            if node.op_type == "Cast" and self._types.get(node.input[0], onnx.TensorProto.FLOAT) not in _FLOATS:
                found[node.output[0]] = (0.0, 1.0)
            elif node.op_type == "Sub":
                second = of(node.input[1])
                if first is not None and second is not None:
                    found[node.output[0]] = (first[0] - second[1], first[1] - second[0])
            elif first is not None:
                found.update(dict.fromkeys(filter(None, node.output), first))
        return found
