"""Predicted placement against the compiler's verdict: `python benchmarks/placement.py --graphs 200 --archs v69,v75`.

Graphs (seeded ones, and with `--recipes` the models of all shipped recipes) are converted, quantized and compiled as a
build does it. Each node of the source model is then where the compiler put what it became (on the CPU where any part
is), and that is compared with what `lint` said of the source alone. A graph that the build refuses or the compiler
fails on is compared as a whole: lint should have an error in it. Every miss is listed. The exit code is 1 where fewer
than 99 % of all nodes or 95 % of the CPU nodes are right.
"""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
import zoo
from project import table

from anfbuild import sources
from anfbuild.errors import AnfbuildError
from anfbuild.graph import clean, input_values, serialize
from anfbuild.graph.constraints import RULES, Aim, Precision, inspect
from anfbuild.qnn.compile import compile_context
from anfbuild.qnn.options import Options
from anfbuild.quantization import SCHEMES
from anfbuild.quantization.quantize import quantize
from anfbuild.quantization.statistics import collect
from anfbuild.recipe import compose
from anfbuild.recipe.files import shipped
from anfbuild.soc import default_soc
from anfbuild.sources.readers import read

NODES, CPU_NODES, HARD = 0.99, 0.95, 0.3
"""Shares that must be right at least; and of the graphs, how many must hold a CPU node or a failure, to be a test."""
SMALL = {"ocr_detect": ["model.inputs.x.shape=[1,3,160,160]"]}
"""Overrides that leave a recipe's graph as it is and spare time."""


@dataclass(frozen=True)
class Subject:
    """A source model, and what a recipe says of it."""

    name: str
    model: onnx.ModelProto
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    outputs: Sequence[str] | None = None


@dataclass
class Score:
    """Of one architecture."""

    graphs: int = 0
    hard: int = 0
    """Graphs with a CPU node, or that cannot be built."""
    nodes: int = 0
    nodes_right: int = 0
    cpu: int = 0
    """Nodes that the compiler put on the CPU."""
    cpu_right: int = 0
    failures: int = 0
    failures_right: int = 0
    misses: list[str] = field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether the shares are what they must be."""
        return self.nodes_right >= NODES * self.nodes and self.cpu_right >= CPU_NODES * self.cpu


def seeded(seeds: Sequence[int]) -> Iterator[Subject]:
    """The graphs of the zoo."""
    for seed in seeds:
        yield Subject(f"seed {seed}", zoo.make(seed))


def of_recipes(folder: Path) -> Iterator[Subject]:
    """The models of all shipped recipes, fetched into `folder`."""
    for path in sorted((shipped() / "recipes").glob("*.yaml")):
        if path.name.endswith(".lock.yaml"):
            continue
        config = compose([f"+recipe={path.stem}", *SMALL.get(path.stem, [])], shipped()).config
        for component, part in (config["components"] or {path.stem: config}).items():
            source, asked = part["source"], part["model"]
            keys = {key: source[key] for key in sources.KINDS[source["kind"]]}
            place = folder / path.stem / component
            model = read(sources.fetch(source["kind"], folder=place, sha256=source["sha256"], **keys))
            shapes = {name: entry["shape"] for name, entry in asked["inputs"].items()}
            yield Subject(
                path.stem if component == path.stem else f"{path.stem}.{component}", model, shapes, asked["outputs"]
            )


def judge(subject: Subject, arch: str, scheme: str, score: Score) -> None:
    """Add to the score what was predicted of the subject and what the compiler says."""
    soc, found = default_soc(arch), SCHEMES[scheme]
    precision = Precision(found.name, found.activation_bits, found.weight_bits, found.per_channel)
    aim = Aim(soc.name.lower(), soc.arch, soc.vtcm_mb, soc.fp16, precision)
    predicted = inspect(subject.model, aim, subject.shapes, subject.outputs)
    place = f"{arch} {subject.name}"
    errors = {entry.rule for entry in predicted.findings if entry.severity.value == "error"}
    refusals = {name for name in errors if RULES[name].kind != "exactness"}  # those others build, and are wrong
    score.graphs += 1
    try:
        units = compiled(subject, soc.soc_model, arch, scheme)
    except AnfbuildError as error:
        score.hard += 1
        score.failures += 1
        score.failures_right += bool(refusals)
        if not refusals:
            score.misses.append(f"{place}: not predicted to fail: {' '.join(str(error).split())[:200]}")
        return
    if refusals:
        score.misses.append(f"{place}: predicted to fail by {', '.join(sorted(refusals))}, and is built")
    score.hard += "CPU" in units.values()
    for placed in predicted.placement:
        if placed.unit in ("folded", "removed") or placed.node not in units:
            continue
        actual = units[placed.node]
        score.nodes += 1
        score.nodes_right += placed.unit == actual
        score.cpu += actual == "CPU"
        score.cpu_right += actual == placed.unit == "CPU"
        if placed.unit != actual:
            score.misses.append(f"{place}: {placed.node} is on {actual}, predicted {placed.unit}")


def compiled(subject: Subject, soc_model: int, arch: str, scheme: str) -> dict[str, str]:
    """Source node -> the unit of what it became."""
    cleaned = clean(subject.model, subject.shapes, subject.outputs)
    qdq, _ = quantize(cleaned.model, collect(cleaned.model, [("sample", draw(cleaned.model))]), scheme, "minmax")
    with tempfile.TemporaryDirectory() as folder:
        built = compile_context(serialize(qdq), Options(soc_model, arch), Path(folder), timeout_s=300)
    units: dict[str, str] = {}
    for verdict in built.verdicts:
        for source in cleaned.provenance.get(verdict.node, ()):
            units[source] = "CPU" if "CPU" in (units.get(source), verdict.unit) else "HTP"
    return units


def draw(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """One sample of noise; of whole numbers, three ones and the rest zeros, as words and padding."""
    random = np.random.default_rng(0)
    feeds = {}
    for value in input_values(model):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            feeds[value.name] = random.standard_normal(shape, np.float32)
        else:
            feeds[value.name] = np.zeros(shape, np.int64)
            feeds[value.name][:, :3] = 1
    return feeds


def campaign(subjects: Iterator[Subject], archs: Sequence[str], scheme: str) -> dict[str, Score]:
    """The score of each architecture. Misses are printed as they are found."""
    scores: dict[str, Score] = collections.defaultdict(Score)
    for subject in subjects:
        for arch in archs:
            before = len(scores[arch].misses)
            judge(subject, arch, scheme, scores[arch])
            for miss in scores[arch].misses[before:]:
                print(miss, flush=True)
    return scores


def shown(scores: Mapping[str, Score]) -> str:
    """The scores as a table."""
    headings = "arch, graphs, with a CPU node or a failure, nodes right, CPU nodes right, failures right, misses"
    rows = [
        [
            *(arch, str(s.graphs), f"{s.hard / s.graphs:.0%}", f"{s.nodes_right}/{s.nodes}"),
            *(f"{s.cpu_right}/{s.cpu}", f"{s.failures_right}/{s.failures}", str(len(s.misses))),
        ]
        for arch, s in scores.items()
    ]
    return table(headings.split(", "), rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--archs", default="v69,v73,v75,v79")
    parser.add_argument("--scheme", default="int8_per_channel", choices=[*SCHEMES])
    parser.add_argument("--recipes", action="store_true", help="the models of all recipes in place of seeded graphs")
    arguments = parser.parse_args()
    archs = arguments.archs.split(",")
    with tempfile.TemporaryDirectory() as name:
        seeds = range(arguments.first, arguments.first + arguments.graphs)
        subjects = of_recipes(Path(name)) if arguments.recipes else seeded(seeds)
        scores = campaign(subjects, archs, arguments.scheme)
    print(shown(scores))
    is_hard = arguments.recipes or all(score.hard >= HARD * score.graphs for score in scores.values())
    return int(not (is_hard and all(score.holds for score in scores.values())))


if __name__ == "__main__":
    sys.exit(main())
