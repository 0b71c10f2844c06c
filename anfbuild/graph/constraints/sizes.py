"""Static shapes of all values, where some depend on what a graph computes from the sizes of others.

Exporters write a Reshape's target as Shape, Gather and Concat. onnx's inference follows a part of that; the build folds
the rest by running it. Here onnx's reference evaluator does, on small integers only, and only where it is needed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.graph.shapes import infer, known_shapes

_SMALL = 512
"""Elements of a value up to which it may be a shape, or a part of one."""
_ROUNDS = 16
_RUN = {
    *("Abs", "Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Expand", "Flatten", "Floor"),
    *("Gather", "GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual", "Max"),
    *("Min", "Mod", "Mul", "Neg", "Not", "Or", "Pow", "Range", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"),
    *("Reshape", "Round", "ScatterND", "Sign", "Slice", "Sqrt", "Squeeze", "Sub", "Tile", "Transpose", "Unsqueeze"),
    "Where",
}
"""Operators that sizes are computed with. None makes more than the product of what it reads, but for those below."""


def resolve(model: onnx.ModelProto) -> None:
    """Write every shape that can be found into the model's value_info. Raises StepError, when all is written, for
    shapes that contradict each other."""
    known = infer(model)
    values: dict[str, np.ndarray] | None = None
    for _ in range(_ROUNDS):
        shapes = known_shapes(known)
        if _complete(known, shapes):
            break
        values = _given(known) if values is None else values
        if not _fold(known, shapes, values):
            break
        known = infer(known)
    del model.graph.value_info[:]
    model.graph.value_info.extend(known.graph.value_info)
    for value, other in zip(model.graph.output, known.graph.output, strict=True):
        value.CopyFrom(other)
    if not _complete(known, known_shapes(known)):
        infer(known, strict=True)


def _complete(model: onnx.ModelProto, shapes: dict[str, tuple[int, ...]]) -> bool:
    return all(name in shapes for node in model.graph.node for name in node.output if name)


def _given(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """The small constants."""
    fed = {value.name for value in model.graph.input}
    tensors = {tensor.name: tensor for tensor in model.graph.initializer if tensor.name not in fed}
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            tensors[node.output[0]] = node.attribute[0].t
    return {
        name: numpy_helper.to_array(tensor)
        for name, tensor in tensors.items()
        if math.prod(tensor.dims) <= _SMALL and tensor.data_type != onnx.TensorProto.STRING
    }


def _fold(model: onnx.ModelProto, shapes: dict[str, tuple[int, ...]], values: dict[str, np.ndarray]) -> bool:
    """Replace nodes whose values can be computed by constants; whether there were any. Adds to `values`."""
    folded = False
    for node in model.graph.node:
        if len(node.output) != 1 or node.output[0] in values or node.domain not in ("", "ai.onnx"):
            continue
        value = _compute(model, node, shapes, values)
        if value is not None and value.size <= _SMALL:
            values[node.output[0]] = value
            constant = onnx.helper.make_node(
                "Constant", [], [node.output[0]], node.name, value=numpy_helper.from_array(value)
            )
            node.CopyFrom(constant)
            folded = True
    return folded


def _compute(
    model: onnx.ModelProto, node: onnx.NodeProto, shapes: dict[str, tuple[int, ...]], values: dict[str, np.ndarray]
) -> np.ndarray | None:
    if node.op_type == "Shape" and node.input[0] in shapes:
        bounds = {entry.name: entry.i for entry in node.attribute}
        return np.array(shapes[node.input[0]][bounds.get("start") : bounds.get("end")], np.int64)
    if node.op_type == "Size" and node.input[0] in shapes:
        return np.array(math.prod(shapes[node.input[0]]), np.int64)
    if node.op_type not in _RUN or any(name and name not in values for name in node.input):
        return None
    made = shapes.get(node.output[0])
    if made is not None and math.prod(made) > _SMALL:
        return None
    if node.op_type in ("Range", "ConstantOfShape", "Expand", "Tile") and _would_be(node, values) > _SMALL:
        return None
    return _run(model, node, values)


def _would_be(node: onnx.NodeProto, values: dict[str, np.ndarray]) -> float:
    """Elements of what a node makes whose inputs' values say how many: a few numbers can ask for gigabytes."""
    inputs = [values[name] for name in node.input]
    if node.op_type == "Range":
        start, limit, delta = (float(value) for value in inputs)
        return abs((limit - start) / delta) if delta else math.inf
    grown = math.prod(max(int(size), 1) for size in inputs[-1].reshape(-1))
    return float(grown if node.op_type == "ConstantOfShape" else grown * inputs[0].size)


def _run(model: onnx.ModelProto, node: onnx.NodeProto, values: dict[str, np.ndarray]) -> np.ndarray | None:
    from onnx.reference import ReferenceEvaluator  # here: most models need none of it

    names = [name for name in node.input if name]
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype) for name in names}
    graph = onnx.helper.make_graph(
        [node],
        "one",
        [onnx.helper.make_tensor_value_info(name, kinds[name], values[name].shape) for name in dict.fromkeys(names)],
        [onnx.helper.make_empty_tensor_value_info(node.output[0])],
    )
    try:
        one = onnx.helper.make_model(graph, opset_imports=model.opset_import)
        results: Any = ReferenceEvaluator(one).run(None, {name: values[name] for name in names})
        return np.asarray(results[0])
    except Exception:  # whatever it cannot run stays open: the rules say so
        return None
