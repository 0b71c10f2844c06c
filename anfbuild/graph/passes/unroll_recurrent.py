"""Write LSTM and GRU as the products and activations of each of their time steps."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable

import numpy as np
import onnx

from anfbuild.errors import StepError
from anfbuild.graph.edit import GraphIndex, PassResult, attribute, place, text_attribute
from anfbuild.graph.rewrite import Expansion, Replacements
from anfbuild.graph.shapes import infer, known_shapes

MOST_NODES = 20_000
"""So many may all recurrent nodes of a model become; a step of one direction is about 11."""

_GATES = {"LSTM": 4, "GRU": 3}
_DEFAULT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh")}
_ACTIVATIONS = {name.lower(): name for name in ("Sigmoid", "Tanh", "Relu")}


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 14, static input shapes and constants to be initializers.

    Ensures that no LSTM or GRU is left: forward, reverse, bidirectional, either layout, with or without biases,
    initial states and clip. Float-equal: the same sums in another order. The HTP accepts both operators and then fails
    to prepare them (MEM_ALLOC 1002); unrolled they run.

    Raises StepError naming the node for peepholes, coupled gates, activations with parameters, sequences of other
    lengths than the input's, computed weights, shapes that are not static, and more nodes than MOST_NODES.
    """
    found = [node for node in model.graph.node if node.op_type in _GATES and node.domain == ""]
    if not found:
        return PassResult("unroll_recurrent", 0)
    index = GraphIndex(model.graph)
    shapes = known_shapes(infer(model))
    replacements = Replacements(index)
    made = 0
    for node in found:
        layer = _Layer.of(index, node, shapes.get(node.input[0]))
        made += layer.node_count
        if made > MOST_NODES:
            raise _refused(
                node,
                f"unrolled over {layer.steps} steps, the recurrent nodes would become more than {MOST_NODES} nodes",
                "Choose a shorter sequence in model.inputs.*.shape.",
            )
        replacements.replace(node, _unroll(index, layer))
    notes = [f"unrolled {len(found)} nodes into {made}"]
    return PassResult("unroll_recurrent", replacements.apply(), notes)


@dataclasses.dataclass(frozen=True)
class _Layer:
    """A recurrent node, checked."""

    node: onnx.NodeProto
    steps: int
    batch: int
    weights: np.ndarray
    """(directions, gates x hidden, inputs)"""
    recurrence: np.ndarray
    """(directions, gates x hidden, hidden)"""
    biases: np.ndarray
    """(directions, 2, gates x hidden): what is added to the input's product, and to the state's."""
    activations: list[tuple[str, ...]]
    clip: float | None

    @classmethod
    def of(cls, index: GraphIndex, node: onnx.NodeProto, shape: tuple[int, ...] | None) -> _Layer:
        """Raises StepError for what cannot be unrolled."""
        if shape is None or len(shape) != 3 or 0 in shape:
            raise _refused(node, f"its input has no static shape above zero: {shape or 'unknown'}")
        steps, batch = (shape[1], shape[0]) if attribute(node, "layout", 0) else shape[:2]
        names = [*node.input, *[""] * 8]
        if names[7] and node.op_type == "LSTM":
            raise _refused(node, "peepholes are not supported")
        if attribute(node, "input_forget", 0):
            raise _refused(node, "coupled input and forget gates are not supported")
        if names[4]:
            lengths = index.value(names[4])
            if lengths is None or (lengths != steps).any():
                raise _refused(node, f"its sequences may be of other lengths than {steps}, that of its input")
        weights, recurrence = index.value(names[1]), index.value(names[2])
        biases = index.value(names[3]) if names[3] else None
        if weights is None or recurrence is None or (names[3] and biases is None):
            raise _refused(node, "its weights are computed")
        directions, rows, _ = weights.shape
        if biases is None:
            biases = np.zeros((directions, 2 * rows), weights.dtype)
        clip = next((float(entry.f) for entry in node.attribute if entry.name == "clip"), None)
        return cls(
            *(node, steps, batch, weights, recurrence, biases.reshape(directions, 2, rows)),
            *(_activations(node, directions), clip),
        )

    @property
    def hidden(self) -> int:
        return int(self.recurrence.shape[2])

    @property
    def is_reversed(self) -> list[bool]:
        """Of each direction, whether it starts at the end."""
        return {"forward": [False], "reverse": [True]}.get(
            text_attribute(self.node, "direction", "forward"), [False, True]
        )

    @property
    def node_count(self) -> int:
        """Nodes that it becomes, or a few less."""
        return len(self.is_reversed) * (self.steps * (11 + 2 * (self.clip is not None)) + 6)


def _activations(node: onnx.NodeProto, directions: int) -> list[tuple[str, ...]]:
    default = _DEFAULT_ACTIVATIONS[node.op_type]
    stated = [name.decode() for entry in node.attribute if entry.name == "activations" for name in entry.strings]
    names = stated or [*default] * directions
    for name in names:
        if name.lower() not in _ACTIVATIONS:
            raise _refused(node, f"its activation {name} is not one of {', '.join(_ACTIVATIONS.values())}")
    known = [_ACTIVATIONS[name.lower()] for name in names]
    return [tuple(known[start : start + len(default)]) for start in range(0, len(known), len(default))]


def _unroll(index: GraphIndex, layer: _Layer) -> Iterable[onnx.NodeProto]:
    """The nodes in the place of `layer`'s."""
    node = layer.node
    made = Expansion(index, node)
    batch_first = bool(attribute(node, "layout", 0))
    source = made.node("Transpose", [node.input[0]], perm=[1, 0, 2]) if batch_first else node.input[0]
    flat = made.node("Reshape", [source, made.constant(np.array([layer.steps * layer.batch, -1]), "rows")])
    stacks, last_hidden, last_cell = [], [], []
    for direction, is_reversed in enumerate(layer.is_reversed):
        states = [_initial(index, made, layer, position, direction, batch_first) for position in (5, 6)]
        cell = _Lstm(made, layer, direction) if node.op_type == "LSTM" else _Gru(made, layer, direction)
        results: list[str] = []
        for part in reversed(cell.project(flat)) if is_reversed else cell.project(flat):
            states = cell.step(part, states)
            results.append(states[0] or "")
        stacks.append(results[::-1] if is_reversed else results)
        last_hidden.append(states[0] or "")
        last_cell.append(states[1] or "")
    outputs = [*node.output, "", "", ""]
    shape = [layer.steps, 1, layer.batch, layer.hidden]
    if outputs[0] and index.uses[outputs[0]]:
        parts = [made.node("Concat", stack, axis=0) if len(stack) > 1 else stack[0] for stack in stacks]
        _return(made, parts, shape, [2, 0, 1, 3] if batch_first else None, 1, outputs[0])
    for name, values in ((outputs[1], last_hidden), (outputs[2], last_cell)):
        if name and index.uses[name]:
            _return(made, values, shape[1:], [1, 0, 2] if batch_first else None, 0, name)
    return made.nodes


def _return(
    made: Expansion, parts: list[str], shape: list[int], order: list[int] | None, axis: int, output: str
) -> None:
    """Give the parts, one a direction, `shape`, join them along `axis`, and call the result `output`."""
    target = made.constant(np.array(shape), "shape")
    is_last = len(parts) == 1 and order is None
    shaped = [made.node("Reshape", [part, target], output if is_last else None) for part in parts]
    if len(shaped) > 1:
        shaped = [made.node("Concat", shaped, output if order is None else None, axis=axis)]
    if order is not None:
        made.node("Transpose", shaped, output, perm=order)


def _initial(
    index: GraphIndex, made: Expansion, layer: _Layer, position: int, direction: int, batch_first: bool
) -> str | None:
    """The state, (batch, hidden), that the direction starts with; None: zeros."""
    name = layer.node.input[position] if position < len(layer.node.input) else ""
    value = index.value(name) if name else None
    if not name or (value is not None and not value.any()):
        return None
    shape = [layer.batch, layer.hidden]
    if value is not None:
        return made.constant(np.ascontiguousarray(value[:, direction] if batch_first else value[direction]), "state")
    axis = int(batch_first)
    if len(layer.is_reversed) > 1:
        parts = made.split("Split", [name, made.constant(np.array([1, 1]), "ones")], [None, None], axis=axis)
        name = parts[direction]
    return made.node("Reshape", [name, made.constant(np.array(shape), "shape")])


class _Cell(ABC):
    """One direction: its weights, and how a step makes the next state."""

    order: tuple[int, ...]
    """Where each gate stands among ONNX's: those of the first activation come first, to be computed as one."""

    def __init__(self, made: Expansion, layer: _Layer, direction: int) -> None:
        self._made = made
        self._layer = layer
        self._activations = layer.activations[direction]
        self._weights = self._gates(layer.weights[direction])
        self._recurrence = self._gates(layer.recurrence[direction])
        self._input_bias, self._state_bias = (self._gates(bias) for bias in layer.biases[direction])
        size = layer.hidden
        self._sizes = made.constant(np.array([size * (len(self.order) - 1), size]), "sizes")
        self._each = made.constant(np.array([size] * (len(self.order) - 1)), "sizes")
        limit = np.array(layer.clip or 0, layer.weights.dtype)
        self._limits = [made.constant(-limit, "low"), made.constant(limit, "high")] if layer.clip is not None else []

    def _gates(self, rows: np.ndarray) -> np.ndarray:
        """`rows` of gates, in this cell's order."""
        gates = rows.reshape(len(self.order), self._layer.hidden, -1)[list(self.order)]
        return gates.reshape(rows.shape)

    @abstractmethod
    def step(self, part: str, states: list[str | None]) -> list[str | None]:
        """The states behind a step, given what the input adds to its gates."""

    def project(self, flat: str) -> list[str]:
        """For each step, what the input adds to the gates, (batch, gates x hidden): one product for all steps."""
        made, layer = self._made, self._layer
        weights = made.constant(np.ascontiguousarray(self._weights.T), "input_weights")
        product = made.node("Gemm", [flat, weights, made.constant(self._added_to_input(), "bias")])
        if layer.steps == 1:
            return [product]
        sizes = made.constant(np.full(layer.steps, layer.batch), "batches")
        return made.split("Split", [product, sizes], [None] * layer.steps, axis=0)

    def _added_to_input(self) -> np.ndarray:
        total: np.ndarray = self._input_bias + self._state_bias
        return total

    def _activate(self, which: int, value: str) -> str:
        if self._limits:
            value = self._made.node("Clip", [value, *self._limits])
        return self._made.node(self._activations[which], [value])

    def _add(self, first: str | None, second: str) -> str:
        return second if first is None else self._made.node("Add", [first, second])


class _Lstm(_Cell):
    order = (0, 1, 2, 3)  # input, output, forget; then cell

    def __init__(self, made: Expansion, layer: _Layer, direction: int) -> None:
        super().__init__(made, layer, direction)
        self._product = made.constant(np.ascontiguousarray(self._recurrence.T), "state_weights")

    def step(self, part: str, states: list[str | None]) -> list[str | None]:
        made = self._made
        hidden, cell = states
        gates = self._add(made.node("MatMul", [hidden, self._product]) if hidden else None, part)
        openings, news = made.split("Split", [gates, self._sizes], [None, None], axis=1)
        opened = self._activate(0, openings)
        take, give, keep = made.split("Split", [opened, self._each], [None] * 3, axis=1)
        taken = made.node("Mul", [take, self._activate(1, news)])
        cell = self._add(made.node("Mul", [keep, cell]) if cell else None, taken)
        return [made.node("Mul", [give, made.node(self._activations[2], [cell])]), cell]


class _Gru(_Cell):
    order = (0, 1, 2)  # update, reset; then hidden

    def __init__(self, made: Expansion, layer: _Layer, direction: int) -> None:
        super().__init__(made, layer, direction)
        self._resets_product = bool(attribute(layer.node, "linear_before_reset", 0))
        size = 2 * layer.hidden
        transposed = self._recurrence.T
        self._products = [
            made.constant(np.ascontiguousarray(part), "state_weights")
            for part in ([transposed] if self._resets_product else [transposed[:, :size], transposed[:, size:]])
        ]
        self._one = made.constant(np.ones(1, layer.weights.dtype), "one")
        if self._resets_product:
            self._new_bias = made.constant(self._state_bias[size:], "state_bias")

    def _added_to_input(self) -> np.ndarray:
        total = super()._added_to_input()
        if attribute(self._layer.node, "linear_before_reset", 0):  # the reset applies to that bias too
            size = 2 * self._layer.hidden
            total = np.concatenate([total[:size], self._input_bias[size:]])
        return total

    def step(self, part: str, states: list[str | None]) -> list[str | None]:
        made = self._made
        hidden = states[0]
        openings, news = made.split("Split", [part, self._sizes], [None, None], axis=1)
        recurrent: str | None = None
        if hidden:
            product = made.node("MatMul", [hidden, self._products[0]])
            if self._resets_product:
                product, recurrent = made.split("Split", [product, self._sizes], [None, None], axis=1)
            openings = self._add(product, openings)
        update, reset = made.split("Split", [self._activate(0, openings), self._each], [None] * 2, axis=1)
        if self._resets_product:
            inner = self._add(recurrent, self._new_bias)
            news = self._add(made.node("Mul", [reset, inner]), news)
        elif hidden:
            news = self._add(made.node("MatMul", [made.node("Mul", [reset, hidden]), self._products[1]]), news)
        made_new = made.node("Mul", [made.node("Sub", [self._one, update]), self._activate(1, news)])
        return [self._add(made.node("Mul", [update, hidden]) if hidden else None, made_new), None]


def _refused(node: onnx.NodeProto, why: str, remedy: str | None = None) -> StepError:
    return StepError(
        f"it cannot be unrolled, and the HTP cannot run it otherwise: {why}",
        where=place(node),
        remedy=remedy or "Export the model without it, or cut that part of the model with model.outputs.",
    )
