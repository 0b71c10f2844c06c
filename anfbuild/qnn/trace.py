"""Reads the op trace (`qnn_op_trace.json`): which QNN op each ONNX node became, and why a node became none."""

from __future__ import annotations

import json
from dataclasses import dataclass

from anfbuild.errors import StepError


@dataclass(frozen=True)
class Trace:
    """`ops`: node name → type of the QNN op it is part of ("Concat+Reshape" when it became several of several types).

    `unsupported`: node name → the provider's reason.
    """

    ops: dict[str, str]
    unsupported: dict[str, str]


def read(text: str) -> Trace:
    """Reads the file's text. Raises StepError that names the missing section for any other format."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StepError("the compiler's op trace is not JSON") from error
    ops: dict[str, set[str]] = {}
    for graph in _rows(document, "subgraph_traces"):
        for mapping in _rows(graph, "op_mappings"):
            for source in _rows(mapping, "sources"):
                if source.get("type") == "OP":
                    ops.setdefault(_text(source, "name"), set()).add(_text(mapping, "dst_qnn_op_type"))
    unsupported = {
        _text(row, "node_name"): " ".join(_text(row, "reason").split()) for row in _rows(document, "unsupported_nodes")
    }
    return Trace({node: "+".join(sorted(types)) for node, types in ops.items()}, unsupported)


def _rows(document: object, section: str) -> list[dict[str, object]]:
    rows = document.get(section) if isinstance(document, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise StepError(f"the compiler's op trace has no list {section!r}")
    return rows


def _text(row: dict[str, object], key: str) -> str:
    value = row.get(key)
    if not isinstance(value, str):
        raise StepError(f"the compiler's op trace has no text {key!r}")
    return value
