"""All rules over one model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import onnx

from anfbuild.graph.constraints import (  # noqa: F401  # each file registers its rules, in this order
    encodings,
    exactness,
    inputs,
    memory,
    operators,
    structure,
)
from anfbuild.graph.constraints.aim import Aim
from anfbuild.graph.constraints.placement import Placed, place
from anfbuild.graph.constraints.rule import Finding, Severity, findings
from anfbuild.graph.constraints.scene import Scene

_ORDER = list(Severity)


@dataclasses.dataclass(frozen=True)
class Inspection:
    """What was found."""

    findings: list[Finding]
    """The gravest first, else in the order of rules and nodes."""
    placement: list[Placed]
    """Every node of the source model, local functions written out."""
    sizes: onnx.ModelProto
    """The nodes that work is left of, each with a name, and constants without their values: for a cost model."""

    @property
    def failed(self) -> bool:
        """Whether a build would stop, or make something wrong."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)


def inspect(
    model: onnx.ModelProto,
    aim: Aim,
    shapes: Mapping[str, Sequence[int]] | None = None,
    outputs: Sequence[str] | None = None,
) -> Inspection:
    """Judge a source model for a chip and a precision. Only its structure is looked at, and small constants.

    `shapes` are those of inputs that the model leaves open, `outputs` the ones to keep (None: all). Weights may be
    missing. Raises RecipeError for names and shapes that do not fit the model, StepError for what is no graph.
    """
    scene = Scene(model, aim, shapes or {}, outputs)
    found = sorted(findings(scene), key=lambda finding: _ORDER.index(finding.severity))
    return Inspection(found, place(scene), scene.sizes())
