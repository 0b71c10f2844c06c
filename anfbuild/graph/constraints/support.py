"""Which operators the HTP takes, as the compiler said of each: the table that `benchmarks/operators.py` writes."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import onnx

from anfbuild.graph.constraints.aim import Aim, Precision
from anfbuild.graph.constraints.scene import Node, Scene

TABLE = Path(__file__).with_name("operators.json")
_NEAREST = {
    "int8": ("int8", "int8_per_channel"),
    "int8_per_channel": ("int8_per_channel",),
    "a16w8": ("a16w8", "a16w8_per_channel"),
    "a16w8_per_channel": ("a16w8_per_channel",),
    "a16w16": ("a16w16", "a16w8_per_channel"),
    "fp16": ("float",),
}
"""Scheme -> the precisions of the table that speak for it, the best first."""

MOST_DIMENSIONS = 5
"""Of a value on the HTP: the compiler refuses Transpose, Reshape and Relu of rank 6 ("incorrect Rank 6")."""

Unit = Literal["HTP", "CPU", "refused"]


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the compiler said for some architectures."""

    unit: Unit
    """"refused": the whole model is."""
    reason: str
    archs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Case:
    """An operator in one form."""

    op_type: str
    attributes: Mapping[str, Any]
    """What sets it apart from the plain form."""
    rank: int | None
    """Of the first input, where that sets it apart."""
    computed: int | None
    """Number of the input that is computed where the plain form has a constant."""
    note: str
    """What else does; such a case is not looked up."""
    verdicts: Mapping[str, Sequence[Verdict]]
    """By precision."""


@dataclasses.dataclass(frozen=True)
class Table:
    """All cases, and what they were compiled with."""

    source: str
    cases: tuple[Case, ...]

    @functools.cached_property
    def by_type(self) -> dict[str, list[Case]]:
        """Operator -> its cases that can be looked up."""
        found: dict[str, list[Case]] = {}
        for case in self.cases:
            found.setdefault(case.op_type, [])
            if not case.note:
                found[case.op_type].append(case)
        return found


@functools.cache
def table() -> Table:
    """The table in the package."""
    document = json.loads(TABLE.read_text(encoding="utf-8"))
    return Table(document["source"], tuple(map(_case, document["cases"])))


def _case(row: dict[str, Any]) -> Case:
    verdicts = {
        precision: [Verdict(unit, reason, tuple(archs.split())) for unit, reason, archs in told]
        for precision, told in row.get("verdicts", {}).items()
    }
    return Case(
        row["op_type"], row.get("attributes", {}), row.get("rank"), row.get("computed"), row.get("note", ""), verdicts
    )


def verdict(scene: Scene, node: Node) -> tuple[Unit, str]:
    """Where the compiler put the operator in this form, and why not on the HTP.

    What was never tried counts as CPU, and the reason says so.
    """
    if node.op_type in ("QuantizeLinear", "DequantizeLinear"):
        return "HTP", ""  # encodings, of which nothing is left
    known = table().by_type
    if node.domain != "" or node.op_type not in known:
        return "CPU", "the compiler was never asked about this operator"
    ranks = [len(scene.shapes[name]) for name in (*node.inputs, *node.outputs) if name in scene.shapes]
    if max(ranks, default=0) > MOST_DIMENSIONS:
        return "CPU", f"a value of {max(ranks)} dimensions, the HTP takes {MOST_DIMENSIONS} at most"
    rank = len(scene.shapes[node.input(0)]) if node.input(0) in scene.shapes else None
    fitting = [case for case in known[node.op_type] if _fits(case, node, rank, scene)]
    if not fitting:
        return "CPU", "the compiler was never asked about this form of the operator"
    best = max(fitting, key=_detail)
    return told(best, scene.aim)


def told(case: Case, aim: Aim) -> tuple[Unit, str]:
    """What the compiler said of a case for a chip and a precision, or for the nearest of both that it was asked for."""
    precision = next((name for name in (*_names(aim.precision), *case.verdicts) if name in case.verdicts), None)
    if precision is None:
        return "CPU", "the compiler was never asked about it"
    by_arch = {arch: verdict for verdict in case.verdicts[precision] for arch in verdict.archs}
    nearest = by_arch[min(by_arch, key=lambda arch: (abs(int(arch[1:]) - aim.generation), arch))]
    return nearest.unit, nearest.reason


def _names(precision: Precision) -> tuple[str, ...]:
    by_bits = "a16w8_per_channel" if precision.activation_bits == 16 else "int8_per_channel"
    return _NEAREST.get(precision.name, (by_bits if precision.quantized else "float",))


def _detail(case: Case) -> int:
    """How many things set the case apart."""
    return len(case.attributes) + (case.rank is not None) + (case.computed is not None)


def _fits(case: Case, node: Node, rank: int | None, scene: Scene) -> bool:
    if case.rank is not None and case.rank != rank:
        return False
    if case.computed is not None and node.input(case.computed) in scene.constant:
        return False
    return all(_stated(node, name, scene.opset) == value for name, value in case.attributes.items())


def _stated(node: Node, name: str, opset: int) -> Any:
    """An attribute, or its default."""
    if name in node.attributes:
        return node.attributes[name]
    return _defaults(node.op_type, opset).get(name)


@functools.cache
def _defaults(op_type: str, opset: int) -> dict[str, Any]:
    try:
        schema = onnx.defs.get_schema(op_type, max(opset, 13), "")
    except onnx.defs.SchemaError:
        return {}
    given = {name: entry.default_value for name, entry in schema.attributes.items() if entry.default_value.name}
    values = {name: onnx.helper.get_attribute_value(value) for name, value in given.items()}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}
