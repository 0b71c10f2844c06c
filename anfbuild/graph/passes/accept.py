"""Refuse what this version cannot handle, and bring the rest to one form."""

from __future__ import annotations

import onnx
from onnx import inliner

from anfbuild.errors import StepError
from anfbuild.graph.edit import PassResult, place
from anfbuild.graph.large import on_skeleton
from anfbuild.graph.provenance import restore
from anfbuild.graph.shapes import input_values

_IR_OF_OPSET_17 = 8
_EXPORT_AGAIN = "Export the model again, with its nodes in the order in which they run."


def run(model: onnx.ModelProto) -> PassResult:
    """Requires nothing: a model that was built in memory has seen no checker.

    Ensures that every tensor of the main graph has one maker, before its readers, that every input, output and
    initializer is a dense tensor of numbers (else StepError), that the model has no local functions (they are inlined),
    that no initializer is listed as an input, that the standard domain is called "", and IR 8 or newer.
    """
    notes = []
    check_order(model.graph)
    for value in [*model.graph.input, *model.graph.output]:
        if not value.type.HasField("tensor_type"):
            raise _unsupported(f"{value.name!r} is a {value.type.WhichOneof('value') or 'value without a type'}")
        if value.type.tensor_type.elem_type == onnx.TensorProto.STRING:
            raise _unsupported(f"{value.name!r} is a string tensor")
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.STRING:
            raise _unsupported(f"initializer {tensor.name!r} is a string tensor")
    for sparse in model.graph.sparse_initializer:
        raise _unsupported(f"initializer {sparse.values.name!r} is a sparse tensor")
    if model.functions:
        notes.append(f"inlined {len(model.functions)} local functions")
        inlined, write = on_skeleton(model, inliner.inline_local_functions)
        restore(model.graph, inlined.graph)
        write()
    fed = input_values(model)
    overridable = len(model.graph.input) - len(fed)
    if overridable:
        notes.append(f"{overridable} initializers were listed as inputs")
        kept = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in fed]
        del model.graph.input[:]
        model.graph.input.extend(kept)
    for entry in [*model.opset_import, *model.graph.node]:
        if entry.domain == "ai.onnx":  # the other name of the standard domain
            entry.domain = ""
    model.ir_version = max(model.ir_version, _IR_OF_OPSET_17)
    return PassResult("accept", len(notes), notes)


def check_order(graph: onnx.GraphProto) -> None:
    """Raises StepError for cycles, readers before makers, tensors that are made twice or never, and no outputs."""
    known = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    known |= {tensor.values.name for tensor in graph.sparse_initializer}
    for node in graph.node:
        for name in node.input:
            if name and name not in known:
                raise _invalid(node, f"it reads {name!r}, which no node before it makes (a cycle, or a wrong order)")
        for name in node.output:
            if name and name in known:
                raise _invalid(node, f"it makes {name!r}, which something else makes as well")
            known.add(name)
    if not graph.output:
        raise StepError("the model has no outputs, so nothing of it would be left", remedy="Export the model again.")
    returned: set[str] = set()
    for value in graph.output:
        if value.name in returned:
            raise StepError(
                f"not a valid ONNX model: output {value.name!r} is listed twice",
                remedy="Export the model again, with each output once.",
            )
        returned.add(value.name)
        if value.name not in known:
            raise StepError(f"not a valid ONNX model: nothing makes output {value.name!r}", remedy=_EXPORT_AGAIN)


def _invalid(node: onnx.NodeProto, why: str) -> StepError:
    return StepError(f"not a valid ONNX model: {why}", where=place(node), remedy=_EXPORT_AGAIN)


def _unsupported(what: str) -> StepError:
    return StepError(
        f"{what}, which is not supported",
        remedy="Cut that part of the model with model.outputs, or export the model without it.",
    )
