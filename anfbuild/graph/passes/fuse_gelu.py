"""Fuse a GELU that is written out with Erf or Tanh into one Gelu."""

from __future__ import annotations

import math

import onnx
from onnx import version_converter

from anfbuild.graph.edit import GraphIndex, PassResult
from anfbuild.graph.large import on_skeleton
from anfbuild.graph.provenance import restore
from anfbuild.graph.rewrite import Replacements

_OPSET = 20
"""The first with Gelu."""
_IR = 9
"""The first that opset 20 goes with."""
_CLOSE = 1e-4
"""Relative tolerance of the constants: exporters round them, sqrt(2) to 1.4142 at the worst."""


def run(model: onnx.ModelProto) -> PassResult:
    """Requires opset 17 to 21 and constants to be initializers.

    Ensures that no x (1 + erf(x / sqrt(2))) / 2, and no x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, is left, the
    factors in any order, except where something else reads what lies between. The model comes to opset 20, the first
    with Gelu; where it cannot be converted, all stays and that is noted. Float-equal: the same functions, rounded in
    other places. The HTP has no Erf, so that each written out GELU would be a round trip through the CPU, and in
    8 bits one was seen to come out wrong; its own GELU was seen equal to the CPU's on every 8-bit value.

    x sigmoid(x) stays two nodes: the HTP runs both, it has no one operator for it, nor does ONNX up to opset 21.
    """
    if not any(node.op_type in ("Erf", "Tanh") for node in model.graph.node):
        return PassResult("fuse_gelu", 0)
    found = _find(model)
    opset = next(entry.version for entry in model.opset_import if entry.domain == "")
    if not len(found) or opset >= _OPSET:
        count = found.apply()
        return PassResult("fuse_gelu", count, [f"fused {count} nodes"] if count else [])
    try:
        converted, write = on_skeleton(model, lambda whole: version_converter.convert_version(whole, _OPSET))
    except (version_converter.ConvertError, RuntimeError, ValueError) as error:
        why = f"no conversion to opset {_OPSET}: {' '.join(str(error).split())}"
        return PassResult("fuse_gelu", 0, [f"{len(found)} GELUs stay written out: {why}"])
    restore(model.graph, converted.graph)
    converted.ir_version = max(converted.ir_version, _IR)
    write()
    count = _find(model).apply()
    return PassResult("fuse_gelu", count, [f"opset {opset} to {_OPSET}", f"fused {count} nodes"])


def _find(model: onnx.ModelProto) -> Replacements:
    index = GraphIndex(model.graph)
    replacements = Replacements(index)
    for node in reversed(model.graph.node):  # the last factor of a product first
        if node.op_type != "Mul" or node.domain != "" or replacements.is_gone(node):
            continue
        match = _match(index, node)
        if match is not None:
            source, kind, inner = match
            fused = onnx.helper.make_node("Gelu", [source], list(node.output), name=node.name, approximate=kind)
            replacements.replace(node, [fused], inner)
    return replacements


def _match(index: GraphIndex, last: onnx.NodeProto) -> tuple[str, str, list[onnx.NodeProto]] | None:
    """x, the approximation, and the nodes before `last`, where `last` ends a GELU."""
    factors, inner = list(last.input), []
    for _ in range(2):  # of at most three factors, x, 1/2 and the sum
        product = next((p for name in factors if (p := index.sole_producer(name, "Mul")) is not None), None)
        if product is None or len(factors) > 2:
            break
        factors.remove(product.output[0])
        factors += product.input
        inner.append(product)
    numbers = [number for name in factors if (number := _scalar(index, name)) is not None]
    values = [name for name in factors if _scalar(index, name) is None]
    if len(values) != 2 or len(numbers) != 1 or not math.isclose(numbers[0], 0.5, rel_tol=_CLOSE):
        return None
    for source, other in (values, values[::-1]):
        addition = index.sole_producer(other, "Add")
        found = _beside(index, addition, 1.0)
        function = index.sole_producer(found, "Erf", "Tanh") if found else None
        if addition is None or function is None:
            continue
        argument = _erf_argument if function.op_type == "Erf" else _tanh_argument
        before = argument(index, function.input[0], source)
        if before is not None:
            return source, "none" if function.op_type == "Erf" else "tanh", [*inner, addition, function, *before]
    return None


def _erf_argument(index: GraphIndex, name: str, source: str) -> list[onnx.NodeProto] | None:
    """The node that makes x / sqrt(2)."""
    node = index.sole_producer(name, "Div", "Mul")
    if node is None:
        return None
    if node.op_type == "Div":
        divisor = _scalar(index, node.input[1])
        is_scaled = divisor is not None and math.isclose(divisor, math.sqrt(2), rel_tol=_CLOSE)
        return [node] if is_scaled and node.input[0] == source else None
    return [node] if _beside(index, node, math.sqrt(0.5)) == source else None


def _tanh_argument(index: GraphIndex, name: str, source: str) -> list[onnx.NodeProto] | None:
    """The nodes that make sqrt(2 / pi) (x + 0.044715 x^3)."""
    scaling = index.sole_producer(name, "Mul")
    total = _beside(index, scaling, math.sqrt(2 / math.pi))
    addition = index.sole_producer(total, "Add") if total else None
    if scaling is None or addition is None or source not in addition.input:
        return None
    cubic = index.sole_producer(addition.input[1 if addition.input[0] == source else 0], "Mul")
    cube = _beside(index, cubic, 0.044715)
    power = index.sole_producer(cube, "Pow") if cube else None
    if cubic is None or power is None or power.input[0] != source or _scalar(index, power.input[1]) != 3:
        return None
    return [scaling, addition, cubic, power]


def _beside(index: GraphIndex, node: onnx.NodeProto | None, constant: float) -> str | None:
    """The input of `node` beside the scalar `constant`."""
    if node is not None:
        for value, side in ((0, 1), (1, 0)):
            found = _scalar(index, node.input[side])
            if found is not None and math.isclose(found, constant, rel_tol=_CLOSE):
                return str(node.input[value])
    return None


def _scalar(index: GraphIndex, name: str) -> float | None:
    value = index.value(name)
    # A single value of a higher rank might raise the rank of what it meets.
    return float(value.reshape(())) if value is not None and value.size == 1 and value.ndim <= 1 else None
