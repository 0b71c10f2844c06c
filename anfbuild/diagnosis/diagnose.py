"""The stages of one build compared, and the first node of each that departs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import onnx

from anfbuild.diagnosis.difference import difference
from anfbuild.diagnosis.locate import Departure, Search
from anfbuild.diagnosis.rules import Explanation, explain, saturation
from anfbuild.diagnosis.sides import Arrays, Run, Side, on_cpu, on_emulator
from anfbuild.diagnosis.stages import Compared, Stage, compare, spans, stages
from anfbuild.diagnosis.tensors import made, plain_views, quantized_views
from anfbuild.diagnosis.words import sentences
from anfbuild.errors import AnfbuildError, StepError
from anfbuild.graph import Session
from anfbuild.graph.constraints import Aim, Finding, inspect
from anfbuild.graph.edit import used_names
from anfbuild.qnn.options import Options
from anfbuild.quantization.encodings import Encodings
from anfbuild.quantization.saturation import useful_range
from anfbuild.quantization.topology import analyse


@dataclasses.dataclass(frozen=True)
class Models:
    """One model at each stage, and what the steps said of how one became the next."""

    source: onnx.ModelProto
    converted: onnx.ModelProto
    conditioned: onnx.ModelProto
    qdq: onnx.ModelProto
    encodings: Encodings
    provenance: Mapping[str, Sequence[str]]
    """Node -> the nodes of the source model whose work it does; one that is not here is the source node of its name."""
    rewritten: Sequence[str]
    """The nodes that `condition` gave other constants."""


@dataclasses.dataclass(frozen=True)
class Target:
    """The chip, what rules judge for, the shapes of the recipe's inputs, and LSB that the gate on agreement allows."""

    options: Options
    aim: Aim
    shapes: Mapping[str, Sequence[int]]
    agreement_lsb: float


@dataclasses.dataclass(frozen=True)
class Emulation:
    """What the chip's side answers, one mapping a sample, or why it does not."""

    outputs: Sequence[Arrays]
    reason: str | None = None
    source: Literal["emulated", "measured_device"] = "emulated"


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """All stages in their order; of one past its bound, where it departs and why, as far as that is known."""

    samples: int
    stages: tuple[Compared, ...]
    departures: Mapping[str, Departure]
    explanations: Mapping[str, Explanation]
    sources: Mapping[str, Sequence[str]]
    """Departing stage -> the source nodes that its node does the work of."""

    @property
    def healthy(self) -> bool:
        """Whether no stage is past a hard bound."""
        return all(found.passed is not False or not found.stage.hard for found in self.stages)

    def to_json(self) -> dict[str, Any]:
        """diagnosis.json, with the same in sentences: `words`."""
        document = {
            "samples": self.samples,
            "healthy": self.healthy,
            "stages": [{**found.to_json(), "departs": self._departs(found.stage.name)} for found in self.stages],
        }
        return {**document, "words": sentences(document)}

    def _departs(self, stage: str) -> dict[str, Any] | None:
        departure, explanation = self.departures.get(stage), self.explanations.get(stage)
        if departure is None:
            return None
        told = None if explanation is None else explanation.to_json()
        return {**departure.to_json(), "sources": list(self.sources[stage]), "rule": told}


def diagnose(
    models: Models, feeds: Sequence[Arrays], quantized: Sequence[Arrays], chip: Emulation, target: Target
) -> Diagnosis:
    """Compare each stage with the one before on the samples `feeds`, one mapping a sample: input -> array.

    `quantized` are the QDQ model's answers on the CPU, by sample. A stage that cannot be compared says why; of one
    that is past its bound, the first node that departs is looked for (`locate.py`). Raises StepError where there is no
    sample, or a model of the build's own does not run.
    """
    if not feeds:
        raise StepError("there is no sample to compare on", remedy="Set emulate.samples to 1 or more.")
    return _Diagnosing(models, feeds, quantized, chip, target).run()


class _Diagnosing:
    def __init__(
        self, models: Models, feeds: Sequence[Arrays], quantized: Sequence[Arrays], chip: Emulation, target: Target
    ) -> None:
        self._models = models
        self._feeds = feeds
        self._chip = chip
        self._target = target
        self._spans = spans(models.encodings)
        names = [value.name for value in models.converted.graph.output]
        self._answers: dict[str, Sequence[Arrays]] = {"qdq": quantized[: len(feeds)], "emulated": chip.outputs}
        self._reasons: dict[str, str] = {} if chip.reason is None else {"emulated": chip.reason}
        for stage in ("source", "converted", "conditioned"):
            self._answer(stage, getattr(models, stage), names)

    def _answer(self, stage: str, model: onnx.ModelProto, names: Sequence[str]) -> None:
        try:
            session = Session(model, names)
            runs = [session.run({name: feed[name] for name in session.inputs if name in feed}) for feed in self._feeds]
            self._answers[stage] = [{name: run[name] for name in names} for run in runs]
        except StepError as error:
            if stage != "source":
                raise
            self._reasons[stage] = f"the source model does not run as it is: {' '.join(error.what.split())}"

    def run(self) -> Diagnosis:
        compared, departures, explanations, sources = [], {}, {}, {}
        for stage in stages(self._target.agreement_lsb, self._chip.source):
            found = self._compare(stage)
            compared.append(found)
            worst = found.worst
            if worst is None:
                continue
            departure = self._locate(stage, worst.tensor)
            departures[stage.name] = departure
            name = departure.node.name
            sources[stage.name] = self._models.provenance.get(name, [name])
            why = self._explain(stage, departure)
            if why is not None:
                explanations[stage.name] = why
        return Diagnosis(len(self._feeds), tuple(compared), departures, explanations, sources)

    def _compare(self, stage: Stage) -> Compared:
        reason = self._reasons.get(stage.name) or self._reasons.get(stage.against)
        if reason is not None:
            return Compared(stage, reason=reason)
        return compare(stage, self._answers[stage.against], self._answers[stage.name], self._spans)

    def _locate(self, stage: Stage, output: str) -> Departure:
        sample = self._worst_sample(stage, output)
        feeds = self._feeds[sample]
        before, behind = self._side(stage.against, feeds), self._side(stage.name, feeds)
        structure = self._structure(stage.name)
        candidates = set(before.views.exposed) & set(behind.views.exposed) & made(structure)
        candidates -= self._unlike(stage.name, structure)
        return Search(stage, before, behind, structure, candidates, self._spans).run(output)

    def _worst_sample(self, stage: Stage, output: str) -> int:
        pairs = zip(self._answers[stage.against], self._answers[stage.name], strict=True)
        found = [difference(output, [one[output]], [two[output]], self._spans.get(output)) for one, two in pairs]
        figures = [getattr(each.whole, stage.bound.figure) for each in found]
        return figures.index(max(figures))

    def _side(self, stage: str, feeds: Arrays) -> Side:
        model = self._model(stage)
        run: Run = on_emulator(self._target.options) if stage == "emulated" else on_cpu
        return Side(model, quantized_views(model) if stage in ("qdq", "emulated") else plain_views(model), feeds, run)

    def _model(self, stage: str) -> onnx.ModelProto:
        found: onnx.ModelProto = getattr(self._models, "qdq" if stage == "emulated" else stage)
        return found

    def _structure(self, stage: str) -> onnx.ModelProto:
        """The float model whose nodes the stage runs: quantizing leaves their names and tensors."""
        return self._models.converted if stage == "converted" else self._models.conditioned

    def _unlike(self, stage: str, structure: onnx.ModelProto) -> set[str]:
        """Tensors that the stage makes other ones on purpose, without a change of what comes of them."""
        if stage == "conditioned":
            return set(_rewritten(structure, self._models.rewritten))
        if stage == "qdq" and not self._target.aim.precision.as_is:
            return cut_on_purpose(structure, self._models.encodings)
        return set()

    def _explain(self, stage: Stage, departure: Departure) -> Explanation | None:
        if stage.name == "qdq":
            tensor = departure.difference.tensor
            sample = self._worst_sample(stage, departure.output)
            values = self._side("conditioned", self._feeds[sample]).values([tensor])[tensor]
            cut = saturation(tensor, departure.node.name, values, self._models.encodings.activations.get(tensor))
            if cut is not None:
                return cut
        structure = self._structure(stage.name)
        return explain(
            stage.name, departure, structure, self._models.provenance, self._source_findings(), self._target.aim
        )

    def _source_findings(self) -> Sequence[Finding]:
        outputs = [value.name for value in self._models.converted.graph.output]
        try:
            return inspect(self._models.source, self._target.aim, self._target.shapes, outputs).findings
        except AnfbuildError:  # what lint cannot look at has no finding
            return []


def _rewritten(model: onnx.ModelProto, nodes: Sequence[str]) -> Iterator[str]:
    """What the nodes that `condition` rewrote make, and what comes of it up to where it is undone: the Softmax of a
    mask, the second of two evened convolutions."""
    other: set[str] = set()
    for node in model.graph.node:
        reads = other.intersection(used_names(node))
        if node.name in nodes or (reads and node.op_type not in ("Softmax", "Conv")):
            other.update(node.output)
            yield from node.output


def cut_on_purpose(model: onnx.ModelProto, encodings: Encodings) -> set[str]:
    """Tensors whose encoding leaves out what no reader tells apart: those in front of an activation, which have its
    encoding, and those in front of a saturating operator."""
    topology = analyse(model)
    shared = {name for name, root in topology.roots.items() if root != name}
    bits = {name: 8 * np.dtype(encoding.dtype).itemsize for name, encoding in encodings.activations.items()}
    ends = (float("-inf"), float("inf"))
    return shared | {
        name for name in bits if name in topology.roots and useful_range(name, topology, bits[name]) != ends
    }
