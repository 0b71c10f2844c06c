"""What of a graph is computed before the build: one notion, for the pass that does it and for all who foresee it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph.edit import place, subgraphs
from anfbuild.graph.execute import Session

LARGEST_RESULT = 64 * 2**20
"""Bytes. A larger result stays computed, unless it is no larger than what it is computed from: a few numbers can say
"a tensor of gigabytes", where a transposed weight only takes the place of another."""

_INTEGERS = {onnx.TensorProto.INT8, onnx.TensorProto.INT16, onnx.TensorProto.INT32, onnx.TensorProto.INT64}
_INTEGERS |= {onnx.TensorProto.UINT8, onnx.TensorProto.UINT16, onnx.TensorProto.UINT32, onnx.TensorProto.UINT64}

RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
)
"""Operators of which another run gives another value."""
# Initializers are tensors.
_NO_TENSORS = {"SequenceConstruct", "SequenceEmpty", "SplitToSequence", "Optional"}
# Folding these would undo what a quantized source model states.
QUANTIZATION = frozenset({"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"})
"""Operators that say what encoding a value has."""


def is_foldable(node: onnx.NodeProto) -> bool:
    """Whether the node becomes a constant where all that it reads is constant."""
    return (
        node.domain in ("", "ai.onnx")
        and bool(node.input)
        and node.op_type not in RANDOM | _NO_TENSORS | QUANTIZATION
        and next(subgraphs(node), None) is None
    )


def divides(node: onnx.NodeProto) -> bool:
    """Whether the node divides: of integers without a result, the processor ends the process."""
    return node.op_type in ("Div", "Mod") and node.domain in ("", "ai.onnx")


def check_division(node: onnx.NodeProto, values: Mapping[str, onnx.TensorProto]) -> None:
    """StepError for a division of integers of `values` that has no result: some end the process, by the processor."""
    if not divides(node) or not all(name in values for name in node.input):
        return
    dividend, divisor = (values[name] for name in node.input)
    if dividend.data_type not in _INTEGERS:
        return
    by = numpy_helper.to_array(divisor)
    least = np.iinfo(by.dtype).min
    overflows = least < 0 and (by == -1).any() and (numpy_helper.to_array(dividend) == least).any()
    if overflows or (by == 0).any():
        raise StepError(
            f"{'the least integer is divided by -1' if overflows else 'an integer is divided by 0'}: no result",
            where=place(node),
            remedy="Export the model again without that division, or cut it off with model.outputs.",
        )


def values_of(
    model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto], tensors: Sequence[onnx.TensorProto]
) -> dict[str, np.ndarray]:
    """All that `nodes`, foldable ones of `model` in their order, make of the constants `tensors`.

    Raises StepError as `check_division` does; what a division reads must be among `tensors` for that.
    """
    known = {tensor.name: tensor for tensor in tensors}
    for node in nodes:
        check_division(node, known)
    part = returning_all(model, nodes)
    part.graph.initializer.extend(tensors)
    return Session(part).run({})


def returning_all(model: onnx.ModelProto, nodes: Sequence[onnx.NodeProto]) -> onnx.ModelProto:
    """A model of `nodes` that returns all that they make, without any constants."""
    part = onnx.ModelProto(ir_version=model.ir_version)
    part.opset_import.extend(model.opset_import)
    part.graph.name = "constants"
    part.graph.node.extend(nodes)
    seen: set[str] = set()
    for node in part.graph.node:
        if node.name in seen:  # onnx allows it, the runtime does not
            node.name = ""
        seen.add(node.name)
    outputs = (name for node in nodes for name in node.output if name)
    part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in outputs)  # the runtime infers their types
    return part
