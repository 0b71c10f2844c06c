"""What the HTP computes wrongly without a word: `python benchmarks/exactness.py --archs v75 --schemes int8,a16w8`.

Small graphs, among them every case of `operators.py`, are quantized without the passes that would mend them, compiled
and run on the emulator, and compared with the CPU on the same QDQ model. Wrong is a result whose root mean square
difference is more than BOUND steps, 1/256 of the range of its encoding each, whatever its bits. Each that is wrong must
be foreseen by a rule of kind `exactness` that names a node; each that is not is listed, and the exit code is then 1.
Foreseen and right is no fault: what a padding holds is sometimes zero by chance.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from combinations import combinations
from operators import Case, Graph, cases
from project import table

from anfbuild.errors import AnfbuildError
from anfbuild.graph import Session, serialize
from anfbuild.graph.constraints import RULES, Aim, Precision, inspect
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.emulate import emulate
from anfbuild.qnn.options import Options
from anfbuild.quantization import SCHEMES
from anfbuild.quantization.quantize import quantize
from anfbuild.quantization.statistics import collect
from anfbuild.soc import default_soc

BOUND = 3.0
_BATCH = 20
"""Cases in one compile."""


@dataclass
class Score:
    """Of one architecture and scheme."""

    compared: int = 0
    """Cases whose operator ran on the HTP."""
    wrong: int = 0
    foreseen: int = 0
    right_though_foreseen: int = 0
    refused: int = 0
    refused_foreseen: int = 0
    misses: list[str] = field(default_factory=list)


class Campaign:
    """Runs cases on the emulator of one architecture in one scheme."""

    def __init__(self, arch: str, scheme: str) -> None:
        self.soc, self.scheme = default_soc(arch), scheme
        found = SCHEMES[scheme]
        precision = Precision(found.name, found.activation_bits, found.weight_bits, found.per_channel)
        self.aim = Aim(self.soc.name.lower(), self.soc.arch, self.soc.vtcm_mb, self.soc.fp16, precision)
        self.score = Score()

    def run(self, every: Sequence[Case]) -> Score:
        """The score over all cases that can be asked about: a quantizable one with a float result."""
        known = [case for case in every if self._is_known(case)]
        for start in range(0, len(known), _BATCH):
            self._ask(known[start : start + _BATCH])
        return self.score

    def _is_known(self, case: Case) -> bool:
        try:
            self._quantized([case])
        except (AnfbuildError, onnx.shape_inference.InferenceError, RuntimeError):
            return False
        return True

    def _model(self, some: Sequence[Case]) -> onnx.ModelProto:
        g = Graph()
        for number, case in enumerate(some):
            g.prefix = f"k{number}_"
            result = case.build(g)
            g.nodes[-1].name = f"case{number}"
            g.outputs.append(result)
        return g.model()

    def _quantized(self, some: Sequence[Case]) -> tuple[onnx.ModelProto, dict[str, np.ndarray], list[float]]:
        """The QDQ model, a sample, and the range of each output's encoding."""
        model = self._model(some)
        random = np.random.default_rng(0)
        shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in model.graph.input}
        feeds = {name: random.uniform(-3, 3, shape).astype(np.float32) for name, shape in shapes.items()}
        qdq, encodings = quantize(model, collect(model, [("sample", feeds)]), self.scheme, "minmax")
        steps = [encodings.activations.get(value.name) for value in model.graph.output]
        if None in steps:
            raise onnx.shape_inference.InferenceError("an output is not quantized")
        bits = SCHEMES[self.scheme].activation_bits
        return qdq, feeds, [float(np.max(step.scale)) * 2**bits for step in steps if step is not None]

    def _ask(self, some: Sequence[Case]) -> None:
        options = Options(self.soc.soc_model, self.soc.arch)
        qdq, feeds, ranges = self._quantized(some)
        try:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name) / "context"
                built = compile_context(serialize(qdq), options, folder, timeout_s=300)
                emulated = emulate(folder, [feeds], options).outputs[0]
        except AnfbuildError as error:
            if len(some) == 1:
                self._refused(some[0], " ".join(str(error).split())[:120])
                return
            middle = len(some) // 2
            self._ask(some[:middle])
            self._ask(some[middle:])
            return
        expected = Session(qdq).run(feeds)
        units = {verdict.node: verdict.unit for verdict in built.verdicts}
        for number, (case, value, span) in enumerate(zip(some, qdq.graph.output, ranges, strict=True)):
            if units.get(f"case{number}") == "HTP":
                self._judge(case, expected[value.name], emulated[value.name], span)

    def _judge(self, case: Case, expected: np.ndarray, emulated: np.ndarray, span: float) -> None:
        score, rules = self.score, self._foreseen(case)
        score.compared += 1
        off = math.inf
        if expected.shape == emulated.shape:
            off = float(np.sqrt(np.square(expected.astype(np.float64) - emulated).mean())) / span * 256
        if off > BOUND:
            score.wrong += 1
            score.foreseen += bool(rules)
            if not rules:
                score.misses.append(f"{self.aim.arch} {self.scheme} {said(case)}: {off:.1f} steps, not foreseen")
        else:
            score.right_though_foreseen += bool(rules)

    def _foreseen(self, case: Case) -> set[str]:
        found = inspect(self._model([case]), self.aim).findings
        return {entry.rule for entry in found if entry.node is not None and RULES[entry.rule].kind == "exactness"}

    def _refused(self, case: Case, reason: str) -> None:
        found = inspect(self._model([case]), self.aim)
        refuses = any(f.severity.value == "error" or f.mended_by for f in found.findings)
        self.score.refused += 1
        self.score.refused_foreseen += refuses
        if not refuses:
            self.score.misses.append(f"{self.aim.arch} {self.scheme} {said(case)}: refused, not foreseen: {reason}")


def said(case: Case) -> str:
    """A case in words."""
    return " ".join(filter(None, [case.op_type, ", ".join(f"{k}={v}" for k, v in case.attributes.items()), case.note]))


def every_case(only: str = "") -> Iterator[Case]:
    """Each operator alone, then combinations; `only`: those whose words hold it."""
    yield from (case for case in (*cases(), *combinations()) if only in said(case))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--archs", default="v69,v73,v75,v79")
    parser.add_argument("--schemes", default="int8,int8_per_channel,a16w8_per_channel")
    parser.add_argument("--only", default="", help="cases whose words hold this")
    arguments = parser.parse_args()
    every = list(every_case(arguments.only))
    rows, missed = [], 0
    for arch in arguments.archs.split(","):
        for scheme in arguments.schemes.split(","):
            score = Campaign(arch, scheme).run(every)
            print(*score.misses, sep="\n", end="\n" * bool(score.misses), flush=True)
            missed += len(score.misses)
            shares = [f"{score.foreseen}/{score.wrong}", f"{score.refused_foreseen}/{score.refused}"]
            rows.append([arch, scheme, str(score.compared), *shares, str(score.right_though_foreseen)])
    headings = ["arch", "scheme", "on the HTP", "wrong and foreseen", "refused and foreseen", "foreseen, yet right"]
    print(table(headings, rows))
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
