"""Where a stage departs: the first tensor past the bound, and whether its node does it alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from anfbuild.diagnosis.bisect import first_beyond
from anfbuild.diagnosis.difference import Difference, difference
from anfbuild.diagnosis.sides import Side
from anfbuild.diagnosis.stages import Stage
from anfbuild.diagnosis.tensors import Region, regions
from anfbuild.errors import StepError

_ROUNDS = 3
"""How often the search goes on behind a node that does not do it alone."""


@dataclasses.dataclass(frozen=True)
class Departure:
    """Where a stage departs from the one before."""

    output: str
    """What is past the bound in the end."""
    difference: Difference
    """Of the first tensor that is, on the sample that the output is furthest off on."""
    nodes: tuple[onnx.NodeProto, ...]
    """The nodes that compute the tensor from those before it that are within the bound; first the one that makes it,
    last those that had to be run with it to reproduce the departure."""
    alone: Difference | None
    """Of the same tensor, its nodes run alone on what the stage before feeds them with; None where they do not run."""
    confirmed: bool
    """Whether the nodes depart alone. If not, the difference builds up over many."""
    suspects: tuple[str, ...]
    runs: int
    """Runs that it took to find the tensor."""

    @property
    def node(self) -> onnx.NodeProto:
        """The one that makes the tensor."""
        return self.nodes[0]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "output": self.output,
            "node": self.node.name or self.node.output[0],
            "op_type": self.node.op_type,
            "nodes": [node.name or node.output[0] for node in self.nodes],
            "difference": self.difference.to_json(),
            "at_border": self.difference.at_border,
            "alone": None if self.alone is None else self.alone.to_json(),
            "confirmed": self.confirmed,
            "suspects": list(self.suspects),
            "runs": self.runs,
        }


class Search:
    """One departing output of a stage."""

    def __init__(
        self,
        stage: Stage,
        before: Side,
        behind: Side,
        structure: onnx.ModelProto,
        candidates: set[str],
        spans: Mapping[str, float],
    ) -> None:
        """`structure` is the model whose nodes are named and whose order is searched; `candidates` are tensors of it
        that both sides have and that are to be equal."""
        self._stage = stage
        self._before = before
        self._behind = behind
        self._structure = structure
        self._candidates = candidates
        self._spans = spans
        self._seen: dict[str, Difference] = {}
        self._cleared: set[str] = set()
        self._runs = 0

    def run(self, output: str) -> Departure:
        """Find where the departure of `output` begins.

        A tensor that is past the bound though its nodes, run alone, are not has got there by what built up before it:
        the search then goes on without it, a few times. Where no node does it alone, the first tensor found is told.
        """
        found = regions(self._structure, {*self._candidates, output})
        parents = {name: region.parents for name, region in found.items()}
        first: Departure | None = None
        for _ in range(_ROUNDS):
            told = first_beyond(parents, output, self._beyond)
            departure = self._judge(output, told.tensor, told.suspects, found)
            first = first or departure
            if departure.confirmed or len(told.suspects) > 1 or told.tensor == output:
                return departure if departure.confirmed else first
            self._cleared.add(told.tensor)
        return first or departure

    def _beyond(self, tensors: Sequence[str]) -> Mapping[str, bool] | None:
        new = [name for name in tensors if name not in self._seen]
        if new:
            self._runs += 1
            try:
                self._look(new)
            except StepError:  # the compiler refuses a model that ends here
                return None
        inside = self._stage.bound.inside
        return {
            name: name not in self._cleared and not self._stage.bound.holds(self._seen[name], inside)
            for name in tensors
        }

    def _look(self, tensors: Sequence[str]) -> None:
        before, behind = self._before.values(tensors), self._behind.values(tensors)
        for name in tensors:
            self._seen[name] = difference(name, [before[name]], [behind[name]], self._spans.get(name))

    def _judge(self, output: str, tensor: str, suspects: tuple[str, ...], found: Mapping[str, Region]) -> Departure:
        if tensor not in self._seen:
            self._look([tensor])
        near = found[tensor]
        nodes, parents = near.nodes, near.parents
        alone = self._alone(tensor, parents)
        confirmed = self._departs(alone)
        if not confirmed:  # two neighbours that the compiler makes one of are wrong together only
            further = [found[name] for name in parents]
            wider = dict.fromkeys(name for region in further for name in region.parents)
            together = self._alone(tensor, list(wider))
            if further and self._departs(together):
                alone, confirmed = together, True
                nodes = (*nodes, *(node for region in further for node in region.nodes))
        return Departure(output, self._seen[tensor], nodes, alone, confirmed, suspects, self._runs)

    def _departs(self, alone: Difference | None) -> bool:
        return alone is not None and not self._stage.bound.holds(alone, self._stage.bound.alone)

    def _alone(self, tensor: str, parents: Sequence[str]) -> Difference | None:
        """The tensor out of what the stage before has for `parents`; None where that does not run."""
        try:
            known = self._before.values([*parents, tensor])
            made: np.ndarray = self._behind.alone(tensor, {name: known[name] for name in parents})
        except StepError:
            return None
        return difference(tensor, [known[tensor]], [made], self._spans.get(tensor))
