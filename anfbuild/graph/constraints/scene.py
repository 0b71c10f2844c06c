"""What rules ask about a graph, found once: nodes, who makes and reads what, constants, shapes, types, life."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import onnx
from onnx import inliner, numpy_helper

from anfbuild.errors import StepError
from anfbuild.graph.computed_shapes import resolve
from anfbuild.graph.constraints.aim import Aim
from anfbuild.graph.edit import constant_value, used_names
from anfbuild.graph.folding import LARGEST_RESULT, QUANTIZATION, is_foldable
from anfbuild.graph.large import has_data, skeleton, stated_bytes
from anfbuild.graph.passes.accept import check_order
from anfbuild.graph.passes.fix_inputs import fix
from anfbuild.graph.passes.prune_outputs import kept_outputs
from anfbuild.graph.provenance import labels
from anfbuild.graph.shapes import OpenDimension, input_values, known_shapes, known_types

_SMALL = 4096
"""Bytes of a constant from which on shape inference does not need it: it looks at sizes and axes only."""
_READ = 2**24
"""Bytes of a constant up to which its values are looked at."""


@dataclasses.dataclass(frozen=True, eq=False)
class Node:
    """A node of the source model."""

    position: int
    label: str
    """Its name, or "#3 Relu" (the node at position 3) where it has none of its own."""
    op_type: str
    domain: str
    """"": the standard operators."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: tuple[str, ...]
    """`inputs` without the empty ones, and what its subgraphs capture."""
    proto: onnx.NodeProto

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """Those that it states. Texts are str; graphs and tensors stay as they are."""
        return {entry.name: _plain(onnx.helper.get_attribute_value(entry)) for entry in self.proto.attribute}

    def input(self, index: int) -> str:
        """The name of an input; empty where it has none."""
        return self.inputs[index] if index < len(self.inputs) else ""


class Scene:
    """A source model as the rules see it."""

    def __init__(
        self, model: onnx.ModelProto, aim: Aim, shapes: Mapping[str, Sequence[int]], outputs: Sequence[str] | None
    ) -> None:
        """`shapes` are those of a recipe, of inputs that the model leaves open; `outputs` those that it keeps.

        Raises StepError for what is no graph: a cycle, a value that nothing makes, no outputs.
        """
        self.aim = aim
        self.source = model
        structure = _structure(model)
        check_order(structure.graph)
        self.opset = next((e.version for e in structure.opset_import if e.domain in ("", "ai.onnx")), 0)
        self.open: list[OpenDimension] = fix(structure, shapes, propose=True).left
        """Dimensions of inputs that neither the model nor a recipe fixes. The last proposal stands in for them."""
        self.fault: StepError | None = None
        """Why shapes could not be inferred."""
        try:
            resolve(structure)
        except StepError as error:
            self.fault = error
        self.structure = structure
        """The model without what it weighs, with all shapes that could be inferred."""
        graph = self.structure.graph
        self.nodes = _nodes(graph)
        self.by_type: dict[str, list[Node]] = {}
        self.producers: dict[str, Node] = {}
        self.readers: dict[str, list[Node]] = {}
        for node in self.nodes:
            if node.domain == "":
                self.by_type.setdefault(node.op_type, []).append(node)
            for name in node.outputs:
                self.producers[name] = node
            for name in dict.fromkeys(node.reads):
                self.readers.setdefault(name, []).append(node)
        self.tensors = {tensor.name: tensor for tensor in model.graph.initializer}
        for node in self.of("Constant"):
            value = constant_value(node.proto)
            if value is not None:
                self.tensors[value.name] = value
        self.inputs = [value.name for value in input_values(model)]
        self.outputs = kept_outputs(structure, outputs)
        self.shapes = known_shapes(self.structure)
        self.shapes.update((name, tuple(tensor.dims)) for name, tensor in self.tensors.items())
        self.types = known_types(self.structure)
        self.types.update((name, tensor.data_type) for name, tensor in self.tensors.items())
        self.encoded: set[str] = set()
        """Constants that come out of an encoding of their own: they stay as they are."""
        self.constant = self._constant_names()
        """Every value that depends on constants and static shapes alone: the build folds it, or it is a constant that
        has an encoding of its own."""
        self.alive = self._alive()
        """Positions of the nodes that a kept output depends on."""
        self.mended: dict[int, str] = {}
        """Position of a node -> the pass that rewrites it, as the rules that have run so far found."""

    @cached_property
    def encoding(self) -> list[Node]:
        """The nodes that say what encoding a value has."""
        return [node for node in self.nodes if node.op_type in QUANTIZATION]

    def of(self, *op_types: str) -> list[Node]:
        """The nodes of standard operators, in the order of the model."""
        found = [node for op_type in op_types for node in self.by_type.get(op_type, ())]
        return sorted(found, key=lambda node: node.position) if len(op_types) > 1 else found

    def live(self, *op_types: str) -> list[Node]:
        """The same, those alone that some work is left of: alive, and no constant."""
        return [node for node in self.of(*op_types) if self.works(node)]

    def works(self, node: Node) -> bool:
        """Whether the node is alive and no constant."""
        return node.position in self.alive and not self.folds(node)

    def folds(self, node: Node) -> bool:
        """Whether all that the node makes is constant."""
        return all(name in self.constant for name in node.outputs)

    def value(self, name: str) -> np.ndarray | None:
        """The values of a constant; None where they are computed, too many to look at, or not there."""
        tensor = self.tensors.get(name)
        if tensor is None or not has_data(tensor) or math.prod(tensor.dims) * 4 > _READ:
            return None
        try:
            return numpy_helper.to_array(tensor)
        except (ValueError, TypeError):  # bytes that do not fit the shape: the build refuses them by name
            return None

    def sole_reader(self, name: str) -> Node | None:
        """The one node that reads a value, where it is no output."""
        readers = self.readers.get(name, ())
        return readers[0] if len(readers) == 1 and name not in self.outputs else None

    def elements(self, name: str) -> int:
        """Elements of a value; 0 where its shape is not known."""
        return math.prod(self.shapes[name]) if name in self.shapes else 0

    def bytes(self, name: str) -> int:
        """Bytes of an activation at the scheme's width; 0 where its shape is not known."""
        return self.elements(name) * self.aim.precision.activation_bits // 8

    def neighbours(self, node: Node) -> list[Node]:
        """The nodes that make what it reads, and those that read what it makes."""
        before = [self.producers[name] for name in node.reads if name in self.producers]
        return [*before, *(reader for name in node.outputs for reader in self.readers.get(name, ()))]

    def sizes(self) -> onnx.ModelProto:
        """The nodes that work is left of, each under its label, with constants that have a shape and a type alone."""
        model = onnx.ModelProto(ir_version=self.structure.ir_version)
        model.opset_import.extend(self.structure.opset_import)
        graph = model.graph
        graph.value_info.extend(v for v in self.structure.graph.value_info if v.name not in self.constant)
        graph.input.extend(v for v in self.structure.graph.input if v.name not in self.constant)
        for name in (self.constant - self.encoded) & self.shapes.keys():
            kind = self.types.get(name, onnx.TensorProto.FLOAT)
            graph.initializer.add(name=name, dims=self.shapes[name], data_type=kind)
        known = {value.name: value for value in (*self.structure.graph.output, *self.structure.graph.value_info)}
        graph.output.extend(known[name] for name in self.outputs if name in known)
        for node in self.nodes:
            if not self.works(node) and self.encoded.isdisjoint(node.outputs):
                continue
            graph.node.append(node.proto)
            graph.node[-1].name = node.label
        return model

    def _constant_names(self) -> set[str]:
        kept = set(self.outputs)
        folded = self.tensors.keys() - set(self.inputs)
        for node in self.nodes:
            if not kept.isdisjoint(node.outputs):  # the build leaves a graph's outputs computed
                continue
            sized = node.domain == "" and node.op_type in ("Shape", "Size") and node.input(0) in self.shapes
            reads = is_foldable(node.proto) and folded.issuperset(node.reads) and not self._grows(node)
            if sized or reads or (node.domain == "" and node.op_type == "Constant"):
                folded.update(node.outputs)
            elif node.op_type in QUANTIZATION and all(name in folded or name in self.encoded for name in node.reads):
                self.encoded.update(node.outputs)
        return folded | self.encoded

    def _grows(self, node: Node) -> bool:
        """Whether the node makes a value that is too large for a constant, and larger than what it reads."""
        read = sum(map(self._stated_bytes, node.reads))
        return any(self._stated_bytes(name) > max(LARGEST_RESULT, read) for name in node.outputs)

    def _stated_bytes(self, name: str) -> int:
        """Bytes of a value of its own type; 0 where that or the shape is not known."""
        tensor = onnx.TensorProto(data_type=self.types.get(name, 0), dims=self.shapes.get(name, (0,)))
        return stated_bytes(tensor)

    def _alive(self) -> set[int]:
        wanted = set(self.outputs)
        alive = set()
        for node in reversed(self.nodes):
            if not wanted.isdisjoint(node.outputs):
                alive.add(node.position)
                wanted.update(node.reads)
        return alive


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return list(value) if isinstance(value, tuple) else value


def _nodes(graph: onnx.GraphProto) -> list[Node]:
    return [
        Node(
            position,
            label,
            proto.op_type,
            "" if proto.domain == "ai.onnx" else proto.domain,
            tuple(proto.input),
            tuple(filter(None, proto.output)),
            tuple(used_names(proto)),
            proto,
        )
        for position, (label, proto) in enumerate(zip(labels(graph), graph.node, strict=True))
    ]


def _structure(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without large constants, and without those whose data are missing: they stand among the inputs."""
    small = skeleton(model, lambda tensor: not has_data(tensor) or math.prod(tensor.dims) * 8 > _SMALL)
    return inliner.inline_local_functions(small) if small.functions else small
