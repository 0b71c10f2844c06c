"""The two sides of a stage: models whose inner tensors can be looked at on one sample, whole or a few nodes alone."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from anfbuild.diagnosis.tensors import Views
from anfbuild.graph import Session, serialize
from anfbuild.graph.edit import used_names
from anfbuild.graph.passes import remove_dead
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.emulate import emulate
from anfbuild.qnn.options import Options

Arrays = dict[str, np.ndarray]
Run = Callable[[onnx.ModelProto, Arrays], Arrays]
"""A model and what its inputs are fed with -> its outputs. Raises StepError for a model that does not run."""

_COMPILE_S, _LOAD_S, _FRAME_S, _MEMORY_GB = 300.0, 60.0, 300.0, 8.0
"""Bounds of one look: a part of a model takes no longer than the whole, which the build has compiled and run."""


def on_cpu(model: onnx.ModelProto, feeds: Arrays) -> Arrays:
    """Run with the reference's settings."""
    return Session(model).run(feeds)


def on_emulator(options: Options) -> Run:
    """Compile for `options` and run on the HTP emulator, each in a worker process of bounded time."""

    def run(model: onnx.ModelProto, feeds: Arrays) -> Arrays:
        with tempfile.TemporaryDirectory(prefix="anfbuild-diagnose-") as folder:
            context = Path(folder) / "context"
            compile_context(serialize(model), options, context, timeout_s=_COMPILE_S, memory_gb=_MEMORY_GB)
            done = emulate(
                context, [feeds], options, load_timeout_s=_LOAD_S, frame_timeout_s=_FRAME_S, memory_gb=_MEMORY_GB
            )
            return done.outputs[0]

    return run


@dataclasses.dataclass(frozen=True)
class Side:
    """One model of a stage, on one sample."""

    model: onnx.ModelProto
    views: Views
    feeds: Arrays
    run: Run = on_cpu

    def values(self, tensors: Sequence[str]) -> Arrays:
        """Tensors by their shared names. Only what they are computed from is run. Raises StepError."""
        exposed = {name: self.views.exposed.get(name, name) for name in tensors}
        part = cut(self.model, list(exposed.values()))
        told = self.run(part, {value.name: self.feeds[value.name] for value in part.graph.input})
        return {name: told[view] for name, view in exposed.items()}

    def alone(self, tensor: str, given: Arrays) -> np.ndarray:
        """The tensor, computed from the tensors `given` in place of what this model makes of them. Raises StepError."""
        entries = {self.views.entry.get(name, name): value for name, value in given.items()}
        view = self.views.exposed.get(tensor, tensor)
        part = cut(self.model, [view], entries)
        known = {**self.feeds, **entries}
        return self.run(part, {value.name: known[value.name] for value in part.graph.input})[view]


def cut(
    model: onnx.ModelProto, outputs: Sequence[str], entries: Mapping[str, np.ndarray] | None = None
) -> onnx.ModelProto:
    """The part of `model` that computes `outputs`, from its own inputs or, where it gets that far, from `entries`."""
    part = onnx.ModelProto()
    part.CopyFrom(model)
    graph = part.graph
    values = {value.name: value for value in (*graph.value_info, *graph.output)}
    kept = [values.get(name) or onnx.ValueInfoProto(name=name) for name in dict.fromkeys(outputs)]
    kept = [_copy(value) for value in kept]  # the runtime infers a type that is not stated
    del graph.output[:]
    graph.output.extend(kept)
    for name, value in (entries or {}).items():
        _enter(graph, name, value)
    remove_dead.run(part)
    read = {name for node in graph.node for name in used_names(node)} | {value.name for value in graph.output}
    used = [value for value in graph.input if value.name in read]
    del graph.input[:]
    graph.input.extend(used)
    return part


def _enter(graph: onnx.GraphProto, name: str, value: np.ndarray) -> None:
    """Make the tensor `name` an input: the node that makes it makes another of no use."""
    if any(entry.name == name for entry in graph.input):
        return
    for node in graph.node:
        for position, output in enumerate(node.output):
            if output == name:
                node.output[position] = f"{name}_of_no_use"
    kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    graph.input.append(onnx.helper.make_tensor_value_info(name, kind, value.shape))


def _copy(value: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
    copy = onnx.ValueInfoProto()
    copy.CopyFrom(value)
    return copy
