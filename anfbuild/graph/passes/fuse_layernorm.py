"""Fuse a layer normalization that is written out into one LayerNormalization."""

from __future__ import annotations

import numpy as np
import onnx

from anfbuild.graph.edit import GraphIndex, PassResult, attribute, reduced_axes
from anfbuild.graph.rewrite import Replacements
from anfbuild.graph.shapes import infer, known_shapes


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 17, static input shapes and constants to be initializers.

    Ensures that no (x - mean) / sqrt(mean((x - mean)^2) + epsilon) over the last axes is left, with the Mul and Add of
    constants of these axes behind it, except where something else reads what lies between. Float-equal: the same
    function, rounded in other places. The HTP takes both forms; a quantized model has to represent neither the squares,
    whose range is that of the input squared, nor their mean.
    """
    if not any(node.op_type == "Sqrt" for node in model.graph.node):
        return PassResult("fuse_layernorm", 0)
    index = GraphIndex(model.graph)
    readers = {name: node for node in model.graph.node for name in node.input}
    shapes = known_shapes(infer(model))
    replacements = Replacements(index)
    for node in model.graph.node:
        match = _match(index, node, shapes) if node.op_type == "Div" and node.domain == "" else None
        if match is None:
            continue
        source, axis, epsilon, inner = match
        size = shapes[source][axis:]
        last, scale, shift, behind = _scale_and_shift(index, node, readers, size)
        kind = onnx.helper.tensor_dtype_to_np_dtype(
            index.constants[inner[-1].input[_constant_side(index, inner[-1])]].data_type
        )
        base = node.name or node.output[0]
        inputs = [source, scale or index.add_initializer(f"{base}_ones", np.ones(size, kind)), shift or ""]
        fused = onnx.helper.make_node(
            *("LayerNormalization", inputs[: 2 + (shift is not None)], [last.output[0]]),
            **{"name": base, "axis": axis - len(shapes[source]), "epsilon": epsilon},
        )
        replacements.replace(last, [fused], [*inner, *behind])
    count = replacements.apply()
    return PassResult("fuse_layernorm", count, [f"fused {count} normalizations"] if count else [])


def _match(
    index: GraphIndex, division: onnx.NodeProto, shapes: dict[str, tuple[int, ...]]
) -> tuple[str, int, float, list[onnx.NodeProto]] | None:
    """x, the first axis, epsilon and the nodes before `division` (the addition of epsilon last), where it ends a
    normalization."""
    difference = index.producers.get(division.input[0])
    root = index.sole_producer(division.input[1], "Sqrt")
    addition = index.sole_producer(root.input[0], "Add") if root is not None else None
    if difference is None or difference.op_type != "Sub" or root is None or addition is None:
        return None
    side = _constant_side(index, addition)
    epsilon = index.value(addition.input[side])
    variance = index.sole_producer(addition.input[1 - side], "ReduceMean")
    square = index.sole_producer(variance.input[0], "Pow", "Mul") if variance is not None else None
    mean = index.producers.get(difference.input[1])
    if epsilon is None or epsilon.size != 1 or variance is None or square is None or mean is None:
        return None
    source = difference.input[0]
    rank = len(shapes.get(source, ()))
    other = index.producers.get(square.input[0])
    if other is None or other.op_type != "Sub" or list(other.input) != list(difference.input):
        return None
    if square.op_type == "Mul":
        is_square, readings = square.input[1] == square.input[0], 2
    else:
        exponent = index.value(square.input[1])
        is_square, readings = exponent is not None and exponent.size == 1 and bool((exponent == 2).all()), 1
    if not is_square or mean.op_type != "ReduceMean" or mean.input[0] != source or not rank:
        return None
    axes = [reduced_axes(index, reduction, rank) for reduction in (mean, variance)]
    keeps = all(attribute(reduction, "keepdims", 1) for reduction in (mean, variance))
    if axes[0] != axes[1] or not axes[0] or axes[0] != list(range(axes[0][0], rank)) or not keeps:
        return None
    differences = [difference] if other is difference or other == difference else [difference, other]
    expected = (
        {difference.output[0]: 1 + readings}
        if len(differences) == 1
        else {
            difference.output[0]: 1,
            other.output[0]: readings,
        }
    )
    expected[mean.output[0]] = len(differences)
    if any(index.uses[name] != count for name, count in expected.items()):
        return None
    inner = [mean, *differences, square, variance, root, addition]
    return source, axes[0][0], float(epsilon.reshape(())), inner


def _scale_and_shift(
    index: GraphIndex, node: onnx.NodeProto, readers: dict[str, onnx.NodeProto], size: tuple[int, ...]
) -> tuple[onnx.NodeProto, str | None, str | None, list[onnx.NodeProto]]:
    """The last node of the normalization, its scale and shift where it has them, and the nodes before the last."""
    found: list[str | None] = []
    behind: list[onnx.NodeProto] = []
    last = node
    for operation in ("Mul", "Add"):
        reader = readers.get(last.output[0]) if index.uses[last.output[0]] == 1 else None
        name = None
        if reader is not None and reader.op_type == operation and reader.domain == "":
            side = 1 if reader.input[0] == last.output[0] else 0
            constant = index.constants.get(reader.input[side])
            if constant is not None and tuple(constant.dims) == size:
                name = reader.input[side]
                behind.append(last)
                last = reader
        found.append(name)
    return last, found[0], found[1], behind


def _constant_side(index: GraphIndex, node: onnx.NodeProto) -> int:
    return 1 if node.input[1] in index.constants else 0
