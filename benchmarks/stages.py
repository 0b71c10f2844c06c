"""How far the inner tensors of healthy builds are apart: `python benchmarks/stages.py [--recipes A B ...]`.

The recipes that anfbuild brings, of few samples: of each model the number of tensors that two stages share, and how far
the one furthest off is. What the bounds of `anfbuild diagnose` are made of. Each model is a row; figures are shares of
a tensor's range, and LSB (1/256 of it) in the stage that rounds.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx
from project import table

from anfbuild import graph
from anfbuild.cli.build import make
from anfbuild.diagnosis.diagnose import cut_on_purpose
from anfbuild.diagnosis.difference import difference
from anfbuild.diagnosis.sides import Side
from anfbuild.diagnosis.stages import spans
from anfbuild.diagnosis.tensors import made, plain_views, quantized_views
from anfbuild.engine.run import Build
from anfbuild.quantization.encodings import Encodings
from anfbuild.recipe import compose
from anfbuild.sources.readers import read
from anfbuild.steps.samples import read_feeds, read_task

RECIPES = ("ocr_detect", "ocr_recognize", "text_retrieval", "portrait_segment", "hand_gesture")
FEW = ("dataset.samples=8", "evaluation.samples=8", "emulate.samples=1")


def furthest(
    before: Side, behind: Side, names: set[str], ranges: Mapping[str, float], figure: str
) -> tuple[int, float]:
    """How many tensors are shared, and the figure of the one furthest off."""
    shared = sorted(names & set(before.views.exposed) & set(behind.views.exposed))
    one, other = before.values(shared), behind.values(shared)
    apart = [difference(name, [one[name]], [other[name]], ranges.get(name)).whole for name in shared]
    return len(shared), max(getattr(part, figure) for part in apart)


def files(build: Build, instance: str, folder: Path) -> Path:
    for file in build.result(instance).files:
        (folder / instance / file).parent.mkdir(parents=True, exist_ok=True)
        build.export(instance, file, folder / instance / file)
    return folder / instance


def row(build: Build, part: str, config: Mapping[str, Any], folder: Path) -> list[str]:
    steps = ("fetch", "convert", "condition", "quantize", "dataset")
    fetched, converted, conditioned, quantized, dataset = (files(build, f"{step}{part}", folder) for step in steps)
    task = read_task(config["task"]["kind"], converted / "vocabulary")
    _, feeds = next(read_feeds(dataset / "evaluation", task, config["model"]["inputs"]))
    source = read(fetched / json.loads((fetched / "source.json").read_bytes())["entry"])
    encodings = Encodings.from_json(json.loads((quantized / "encodings.json").read_bytes()))
    clean, floats, qdq = (graph.load(path / "model.onnx") for path in (converted, conditioned, quantized))
    ranges = spans(encodings)

    def plain(model: onnx.ModelProto) -> Side:
        return Side(model, plain_views(model), feeds)

    tensors, most = furthest(plain(source), plain(clean), made(clean), ranges, "max")
    inside = made(floats) - cut_on_purpose(floats, encodings)
    rounded, built_up = furthest(plain(floats), Side(qdq, quantized_views(qdq), feeds), inside, ranges, "rms")
    return [f"{build.name}{part}", str(tensors), f"{most:.1e}", str(rounded), f"{built_up * 256:.0f} LSB"]


def rows(recipes: Sequence[str], project: Path) -> Iterator[list[str]]:
    for name in recipes:
        recipe = compose([f"+recipe={name}", *FEW], project)
        build = make(recipe, project, lambda _: None)
        parts = {f"[{part}]": config for part, config in recipe.components.items()} or {"": recipe.config}
        try:
            for part, config in parts.items():
                yield row(build, part, config, project / name)
        finally:
            build.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recipes", nargs="+", default=RECIPES)
    with tempfile.TemporaryDirectory(prefix="anfbuild-benchmark-") as folder:
        found = list(rows(parser.parse_args().recipes, Path(folder).resolve()))
    print(table(["model", "shared with the source", "furthest (max)", "rounded", "furthest (rms)"], found))


if __name__ == "__main__":
    main()
