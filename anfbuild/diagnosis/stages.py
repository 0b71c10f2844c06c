"""The stages of a build, each compared with the one before, and how far apart the two may be.

All limits are shares of a tensor's range, that of its encoding, so that one limit serves every scheme: 1/256 is an LSB
as `agreement_lsb` has it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from anfbuild.diagnosis.difference import Difference, difference
from anfbuild.quantization.encodings import Encodings

Arrays = Mapping[str, np.ndarray]
Figure = Literal["rms", "max"]

_FLOAT = 1e-4
"""Six times the most that a tensor of the five recipes' converted models is off its source (1.6e-5, of 764 tensors,
`benchmarks/stages.py`): what folding a BatchNormalization, or another order of a sum, makes of float32."""
_LSB = 1 / 256
_BUILT_UP = 64 * _LSB
"""Rounding in 8 bits builds up to 51 LSB inside of the line recognizer (`benchmarks/stages.py`), which reads as the
float model does: inside, only what is past that is called a departure."""


@dataclasses.dataclass(frozen=True)
class Bound:
    """What is held to what."""

    figure: Figure
    limit: float
    """Of an output, and of its border alone."""
    inside: float
    """Of a tensor on the way to an output."""
    alone: float
    """Of a tensor whose inputs are given: what one node may add."""
    why: str

    def holds(self, found: Difference, limit: float | None = None) -> bool:
        """Whether the tensor, and its border where it has one, are within `limit` (None: that of an output)."""
        parts = [part for part in (found.whole, found.border) if part is not None]
        return all(getattr(part, self.figure) <= (self.limit if limit is None else limit) for part in parts)


@dataclasses.dataclass(frozen=True)
class Stage:
    """One step of the way from the source model to the chip."""

    name: str
    against: str
    """The stage before."""
    bound: Bound
    hard: bool
    """False: what is past the bound is told, and is no fault: how much accuracy it costs is the accuracy gate's."""
    source: Literal["measured_host", "emulated", "measured_device"]


def stages(agreement_lsb: float, source: Literal["emulated", "measured_device"] = "emulated") -> tuple[Stage, ...]:
    """The stages in their order; `agreement_lsb` is what the gate of that name lets the emulator differ by."""
    equal = Bound("max", _FLOAT, _FLOAT, _FLOAT, "the same floats, but for the order of sums")
    agreed = agreement_lsb * _LSB
    return (
        Stage("converted", "source", equal, True, "measured_host"),
        Stage("conditioned", "converted", equal, True, "measured_host"),
        Stage(
            "qdq",
            "conditioned",
            Bound("rms", 16 * _LSB, _BUILT_UP, 16 * _LSB, "what rounding costs; the accuracy gate judges it"),
            False,
            "measured_host",
        ),
        Stage(
            "emulated",
            "qdq",
            Bound(
                "rms", agreed, agreed, min(2 * _LSB, agreed), "the gate agreement_lsb; a node alone differs by a step"
            ),
            True,
            source,
        ),
    )


@dataclasses.dataclass(frozen=True)
class Compared:
    """A stage and its outputs, in the model's order. `reason`: why they could not be compared."""

    stage: Stage
    outputs: tuple[Difference, ...] = ()
    reason: str | None = None

    @property
    def passed(self) -> bool | None:
        """None where nothing was compared."""
        return None if self.reason is not None else all(map(self.stage.bound.holds, self.outputs))

    @property
    def worst(self) -> Difference | None:
        """The output that is furthest off, of those past the bound; None where none is."""
        beyond = [found for found in self.outputs if not self.stage.bound.holds(found)]
        return max(beyond, key=lambda found: getattr(found.whole, self.stage.bound.figure)) if beyond else None

    def to_json(self) -> dict[str, Any]:
        """Plain values; `passed` null comes with a reason."""
        bound = self.stage.bound
        return {
            "stage": self.stage.name,
            "against": self.stage.against,
            "source": self.stage.source if self.outputs else None,
            "hard": self.stage.hard,
            "bound": {"figure": bound.figure, "limit": bound.limit, "why": bound.why},
            "passed": self.passed,
            "reason": self.reason,
            "outputs": [{**found.to_json(), "passed": bound.holds(found)} for found in self.outputs],
        }


def compare(stage: Stage, before: Sequence[Arrays], behind: Sequence[Arrays], spans: Mapping[str, float]) -> Compared:
    """The outputs of two models, one mapping a sample: output -> array, of any shape."""
    names = list(before[0])
    return Compared(
        stage,
        tuple(
            difference(name, [run[name] for run in before], [run[name] for run in behind], spans.get(name))
            for name in names
        ),
    )


def spans(encodings: Encodings) -> dict[str, float]:
    """Float tensor -> its range: as many steps as the encoding has codes."""
    return {
        name: encoding.scale[0] * 2.0 ** (8 * np.dtype(encoding.dtype).itemsize)
        for name, encoding in encodings.activations.items()
    }
