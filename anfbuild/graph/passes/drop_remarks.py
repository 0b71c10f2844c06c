"""Drop what exporters write for people, so that two exports of one network become the same model."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from anfbuild.graph.edit import subgraphs


def run(model: onnx.ModelProto) -> None:
    """Requires nothing.

    Ensures that neither the model nor a part of it has a doc_string, and that it names no producer. metadata_props,
    which programs read, stay. What it did is told nowhere: that would be a remark again.
    """
    for field in ("doc_string", "producer_name", "producer_version"):
        model.ClearField(field)
    for graph in _graphs(model.graph):
        graph.ClearField("doc_string")
        for part in (*graph.node, *graph.input, *graph.output, *graph.value_info, *graph.initializer):
            part.ClearField("doc_string")


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _graphs(inner)
