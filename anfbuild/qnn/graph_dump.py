"""Reads the QNN graph that was compiled (JSON) for the data types of its tensors.

It is the proof that a quantized model was compiled as integers: a float model compiles as well, and runs on the
emulator at nearly float accuracy, so that a lost quantization goes unnoticed.
"""

from __future__ import annotations

import json
from collections import Counter

from anfbuild.errors import StepError

# Qnn_DataType_t is written as hexadecimal digits: a family, then the bits in decimal (0x0408: ufixed, 8 bits).
# Source: QNN API reference, QnnTypes, Qnn_DataType_t.
_FAMILIES = {0x00: "int", 0x01: "uint", 0x02: "float", 0x03: "sfixed", 0x04: "ufixed", 0x05: "bool"}
# Qnn_TensorType_t 4 is static: a constant. All others hold values that the graph computes, takes or gives.
_STATIC = 4


def read(text: str) -> tuple[Counter[str], Counter[str]]:
    """Counts (activation tensors, constant tensors) by data type ("ufixed8", "float32", …).

    A float tensor between a Cast of integers and the Quantize behind it is not counted: nothing is computed on it, it
    is how integers, such as a mask, become fixed-point numbers.

    Raises StepError that names the missing section for any other format.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StepError("the compiler's QNN graph dump is not JSON") from error
    graph = document.get("graph") if isinstance(document, dict) else None
    tensors = graph.get("tensors") if isinstance(graph, dict) else None
    if not isinstance(tensors, dict):
        raise StepError("the compiler's QNN graph dump has no section 'graph.tensors'")
    activations: Counter[str] = Counter()
    constants: Counter[str] = Counter()
    between = _between_cast_and_quantize(document["graph"].get("nodes"))
    for name, tensor in tensors.items():
        kind, code = (tensor.get("type"), tensor.get("data_type")) if isinstance(tensor, dict) else (None, None)
        if not isinstance(kind, int) or not isinstance(code, int):
            raise StepError("a tensor of the compiler's QNN graph dump has no 'type' or no 'data_type'")
        if name not in between:
            (constants if kind == _STATIC else activations)[_data_type(code)] += 1
    return activations, constants


def _between_cast_and_quantize(nodes: object) -> set[str]:
    """The tensors that come out of a Cast and that Quantize alone reads."""
    made: set[str] = set()
    read_otherwise: set[str] = set()
    for node in nodes.values() if isinstance(nodes, dict) else ():
        if node.get("type") == "Cast":
            made.update(node.get("output_names", ()))
        if node.get("type") != "Quantize":
            read_otherwise.update(node.get("input_names", ()))
    return made - read_otherwise


def _data_type(code: int) -> str:
    """ "ufixed8" of 0x0408; the hexadecimal code itself where its family is not known."""
    family = _FAMILIES.get(code >> 8)
    return f"{family}{code & 0xFF:x}" if family else f"{code:#06x}"
