"""Compute before the build what does not depend on the inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph.computed_shapes import computed
from anfbuild.graph.edit import PassResult, constant_value, constants, place, remove_at, shape_value, used_names
from anfbuild.graph.execute import Session
from anfbuild.graph.folding import LARGEST_RESULT, check_division, divides, is_foldable, returning_all
from anfbuild.graph.large import is_left_out, stated_bytes
from anfbuild.graph.provenance import Carrier, inherit
from anfbuild.graph.shapes import infer, known_shapes, known_types

ROUNDS = 3
"""Of inferring and folding, before all levels that are left are walked once."""
BATCH = 256 * 2**20
"""Bytes. What is folded at once is in memory several times, and one model has several gigabytes of such weights."""


def run(model: onnx.ModelProto) -> PassResult:
    """Requires no initializer among the inputs; the more input dimensions are static, the more it can do.

    Ensures that values of Constant nodes are initializers, and that standard operators on initializers alone, and
    Shape and Size of values with static shapes, are replaced by their values, computed by the CPU session that also
    runs the whole model. Random operators, quantization operators, nodes with subgraphs, nodes that make a graph output
    and nodes that make a tensor larger than LARGEST_RESULT out of smaller ones stay. Raises StepError for a constant
    that is a string or sparse tensor, and for a division of integers that has no result.
    """
    lifted = _lift(model)
    folded = rounds = 0
    while step := _fold_shapes(model) + _fold_ready(model):
        folded += step
        rounds += 1
        if rounds == ROUNDS:  # one a level of shapes that are computed from shapes: now all levels at once
            folded += _replace(model, computed(model))
    notes = [f"lifted {lifted} Constant nodes"] * bool(lifted) + [f"folded {folded} nodes"] * bool(folded)
    return PassResult("fold_constants", lifted + folded, notes)


def _lift(model: onnx.ModelProto) -> int:
    outputs = {value.name for value in model.graph.output}
    lifted = []
    for position, node in enumerate(model.graph.node):
        if node.op_type == "Constant" and node.domain == "" and node.output[0] not in outputs:
            value = constant_value(node)
            if value is None:
                raise StepError(
                    f"constant {node.output[0]!r} is a string or sparse tensor, which is not supported",
                    where=place(node),
                    remedy="Cut that part of the model with model.outputs, or export the model without it.",
                )
            tensor = model.graph.initializer.add()
            tensor.CopyFrom(value)
            inherit(tensor, [node])
            lifted.append(position)
    remove_at(model.graph.node, lifted)
    return len(lifted)


def _fold_shapes(model: onnx.ModelProto) -> int:
    """Replace Shape and Size of values whose shape is known by what they return."""
    wanted = [node for node in model.graph.node if node.op_type in ("Shape", "Size") and node.domain == ""]
    if not wanted:
        return 0
    shapes = known_shapes(infer(model))
    values = {node.output[0]: shape_value(node, shapes[node.input[0]]) for node in wanted if node.input[0] in shapes}
    return _replace(model, values)


def _fold_ready(model: onnx.ModelProto) -> int:
    """Replace the nodes that depend on initializers alone by what the CPU session computes for them."""
    graph = model.graph
    settled = constants(graph)
    known = set(settled)
    outputs = {value.name for value in graph.output}
    ready: list[onnx.NodeProto] = []
    for node in graph.node:
        is_ready = all(not name or name in known for name in node.input) and outputs.isdisjoint(node.output)
        if divides(node) and not all(name in settled for name in node.input):
            continue  # until the values of its inputs can be checked
        if is_ready and is_foldable(node):
            check_division(node, settled)
            known.update(node.output)
            ready.append(node)
    ready = _some(model, _without_large(model, ready))
    if not ready:
        return 0
    return _replace(model, Session(_part(model, ready)).run({}))


def _some(model: onnx.ModelProto, ready: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The first nodes of `ready`, which together read no more than BATCH bytes: the others wait for the next round."""
    sizes = {tensor.name: stated_bytes(tensor) for tensor in model.graph.initializer}
    left = BATCH
    for count, node in enumerate(ready):
        left -= sum(sizes.get(name, 0) for name in node.input)
        if left < 0 and count:
            return ready[:count]
    return ready


def _without_large(model: onnx.ModelProto, ready: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The nodes of `ready` that make nothing too large, and that read no result of one that does.

    A size that is not known yet waits for the values that it depends on to be constants. Where it is not known even
    then, it depends on what the values are (NonZero, Compress), which bounds it by theirs.
    """
    if not ready:
        return []
    sizes = _sizes(_part(model, ready, values=False))
    settled = set(constants(model.graph))
    small = settled.copy()
    kept = []
    for node in ready:
        reads = [name for name in node.input if name]
        bound = max(LARGEST_RESULT, sum(sizes.get(name, 0) for name in reads))
        unknown = 0 if settled.issuperset(reads) else bound + 1
        if small.issuperset(reads) and all(sizes.get(name, unknown) <= bound for name in node.output if name):
            small.update(node.output)
            kept.append(node)
    return kept


def _sizes(part: onnx.ModelProto) -> dict[str, int]:
    """Name -> bytes, of the tensors whose shape and type can be inferred."""
    inferred = infer(part)
    types = known_types(inferred)
    return {
        name: math.prod(shape) * helper.tensor_dtype_to_np_dtype(types[name]).itemsize
        for name, shape in known_shapes(inferred).items()
        if name in types
    }


def _part(model: onnx.ModelProto, nodes: list[onnx.NodeProto], *, values: bool = True) -> onnx.ModelProto:
    """A model of `nodes` and the initializers that they read, which returns all that they make. Without `values`, the
    large initializers are inputs."""
    read = {name for node in nodes for name in node.input}
    part = returning_all(model, nodes)
    for tensor in model.graph.initializer:
        if tensor.name not in read:
            continue
        if values or not is_left_out(tensor):
            part.graph.initializer.append(tensor)
        else:
            part.graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return part


def _replace(model: onnx.ModelProto, values: Mapping[str, np.ndarray]) -> int:
    """Let initializers take the place of the nodes that make `values`; returns how many nodes."""
    graph = model.graph
    outputs = {value.name for value in graph.output}
    doomed = {
        position: node
        for position, node in enumerate(graph.node)
        if any(name in values for name in node.output) and outputs.isdisjoint(node.output)
    }
    read = {name for position, node in enumerate(graph.node) if position not in doomed for name in used_names(node)}
    makers = {name: node for node in doomed.values() for name in node.output if name}
    known = constants(graph)
    for node in doomed.values():
        for name in node.output:
            if name in read:  # no other needs to exist, though it might cost much
                tensor = graph.initializer.add()
                tensor.CopyFrom(numpy_helper.from_array(np.asarray(values[name]), name))
                inherit(tensor, _origins(name, makers, known))
    remove_at(graph.node, doomed)
    return len(doomed)


def _origins(
    name: str, makers: Mapping[str, onnx.NodeProto], known: Mapping[str, onnx.TensorProto]
) -> Iterator[Carrier]:
    """The nodes of `makers` that `name` depends on, and the constants that they read."""
    waiting, seen = [name], {name}
    while waiting:
        node = makers[waiting.pop()]
        yield node
        for needed in node.input:
            if needed not in seen:
                seen.add(needed)
                if needed in makers:
                    waiting.append(needed)
                elif needed in known:
                    yield known[needed]
