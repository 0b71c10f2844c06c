"""Shapes that are computed from shapes, level by level, in one walk.

onnx's inference sees through the common arithmetic on shapes; what it does not (a Cast to float, a Floor) has to be
computed before it can go on, and to infer the whole model once a level costs the square of their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx
from onnx import helper, numpy_helper

from anfbuild.graph.edit import constant_value, constants, remove_at, shape_value, subgraphs
from anfbuild.graph.folding import divides, is_foldable, values_of
from anfbuild.graph.shapes import infer, is_known, known_shapes

_IR_OF_LONE_INITIALIZERS = 4
"""Before it, onnx's inference sees no initializer that is not listed among the inputs."""
_MOST = 2**16
"""Bytes. Larger constants are no shapes, and are left to others."""
_NOT_INFERRED = (
    onnx.checker.ValidationError,  # of a node without an input or attribute that it needs
    onnx.defs.SchemaError,
    onnx.shape_inference.InferenceError,
    RuntimeError,
    ValueError,
)


def computed(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """The values that follow from static input shapes and small constants, wherever a later shape depends on them.

    What cannot be inferred is left out, with all that depends on it. Raises StepError for a division of integers that
    has no result.
    """
    return _Walk(model).run()


def resolve(model: onnx.ModelProto) -> None:
    """Write every shape that can be found into the model's value_info; its nodes stay.

    Raises StepError, when all is written, for shapes that contradict each other, and as `computed` does.
    """
    known = infer(model)
    values = {} if _is_complete(known) else computed(known)
    if values:
        del known.graph.value_info[:]  # symbols that onnx made up for what it could not follow would stay
        known.graph.value_info.extend(model.graph.value_info)
        known.ir_version = max(known.ir_version, _IR_OF_LONE_INITIALIZERS)
        remove_at(
            known.graph.node, (p for p, node in enumerate(known.graph.node) if any(n in values for n in node.output))
        )
        known.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in values.items())
        known = infer(known)
    del model.graph.value_info[:]
    model.graph.value_info.extend(known.graph.value_info)
    model.graph.value_info.extend(
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in values.items()
    )
    for value, other in zip(model.graph.output, known.graph.output, strict=True):
        value.CopyFrom(other)
    if not _is_complete(known):
        infer(known, strict=True)


def _is_complete(model: onnx.ModelProto) -> bool:
    shapes = known_shapes(model)
    return all(name in shapes for node in model.graph.node for name in node.output if name)


class _Walk:
    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._graph = model.graph
        self._opsets = list(model.opset_import)
        self._versions = {entry.domain: entry.version for entry in model.opset_import}
        self._constants = {n: t for n, t in constants(model.graph).items() if t.ByteSize() <= _MOST}
        self._types = {value.name: value.type for value in model.graph.input}
        for tensor in model.graph.initializer:
            self._types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        self._waiting: dict[str, onnx.NodeProto] = {}
        """Value -> the node that would make it of constants, where nothing has asked for it yet."""
        self._order: dict[str, int] = {}
        """First value of a node that waits -> how many did before it."""
        self._values: dict[str, np.ndarray] = {}

    def run(self) -> dict[str, np.ndarray]:
        for node in self._graph.node:
            self._visit(node)
        return self._values

    def _visit(self, node: onnx.NodeProto) -> None:
        if node.op_type in ("Shape", "Size") and node.domain == "":
            kind = self._types.get(node.input[0])
            if kind is not None and is_known(kind):
                sizes = [dim.dim_value for dim in kind.tensor_type.shape.dim]
                self._add(node.output[0], shape_value(node, sizes))
                return
        given = constant_value(node)
        if given is not None and given.ByteSize() <= _MOST:
            self._constants[node.output[0]] = given
        ready = all(name in self._constants or name in self._waiting for name in node.input if name)
        waits = ready and is_foldable(node)
        if not waits or divides(node):  # whether a division has a result is seen by the values that it reads
            self._evaluate([name for name in node.input if name in self._waiting])
        types = self._infer(node)
        if waits and len(types) < len(node.output) and any(name in self._waiting for name in node.input):
            self._evaluate([name for name in node.input if name in self._waiting])
            types = self._infer(node)
        self._types.update(types)
        if waits and len(types) == len(node.output) and all(_bytes(kind) <= _MOST for kind in types.values()):
            self._waiting.update(dict.fromkeys(types, node))
            self._order[node.output[0]] = len(self._order)

    def _infer(self, node: onnx.NodeProto) -> dict[str, onnx.TypeProto]:
        reads = [name for name in node.input if name]
        if any(subgraphs(node)) or not all(name in self._types for name in reads):
            return {}
        try:
            schema = onnx.defs.get_schema(node.op_type, self._versions.get(node.domain, 1), node.domain)
            types = {name: self._types[name] for name in reads}
            data = {name: self._constants[name] for name in reads if name in self._constants}
            found = onnx.shape_inference.infer_node_outputs(schema, node, types, data, opset_imports=self._opsets)
        except _NOT_INFERRED:
            return {}
        return {name: kind for name, kind in found.items() if is_known(kind)}

    def _evaluate(self, names: Sequence[str]) -> None:
        """Compute what waits and leads to `names`."""
        nodes: dict[str, onnx.NodeProto] = {}
        open_names = list(names)
        while open_names:
            node = self._waiting[open_names.pop()]
            nodes[node.output[0]] = node
            open_names += [n for n in node.input if n in self._waiting and self._waiting[n].output[0] not in nodes]
        if not nodes:
            return
        in_order = sorted(nodes.values(), key=lambda node: self._order[node.output[0]])
        read = {name for node in in_order for name in node.input if name in self._constants}
        tensors = [self._constants[name] for name in sorted(read)]
        for name, value in values_of(self._model, in_order, tensors).items():
            self._add(name, value)

    def _add(self, name: str, value: np.ndarray) -> None:
        self._waiting.pop(name, None)
        self._values[name] = value
        self._constants[name] = numpy_helper.from_array(np.asarray(value), name)
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        self._types[name] = helper.make_tensor_type_proto(kind, list(value.shape))


def _bytes(kind: onnx.TypeProto) -> int:
    tensor = kind.tensor_type
    size: int = helper.tensor_dtype_to_np_dtype(tensor.elem_type).itemsize * math.prod(
        dim.dim_value for dim in tensor.shape.dim
    )
    return size
