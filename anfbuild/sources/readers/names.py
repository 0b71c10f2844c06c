"""Gives the outputs of an exported graph the names that the model has for them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from anfbuild.graph.edit import rename_uses


def rename_outputs(model: onnx.ModelProto, names: Sequence[str]) -> None:
    """Call the outputs of `model`, in their order, by `names`; one that another tensor has is left out."""
    graph = model.graph
    makers = {output: node for node in graph.node for output in node.output}
    taken = {*makers, *(value.name for value in graph.input), *(tensor.name for tensor in graph.initializer)}
    for value, name in zip(graph.output, names, strict=True):
        if name in taken or value.name not in makers:
            continue
        taken.add(name)
        rename_uses(graph.node, {value.name: name})
        outputs = makers[value.name].output
        outputs[list(outputs).index(value.name)] = name
        value.name = name
