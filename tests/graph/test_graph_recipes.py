"""Each pass leaves the floats of every shipped recipe's model as they were. Needs the network."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from graph_models import copy

from anfbuild import sources
from anfbuild.graph import Session, clean_in_place, input_values, pipeline
from anfbuild.graph.conditioning import clamp_masks, equalize
from anfbuild.recipe import compose
from anfbuild.recipe.files import shipped
from anfbuild.sources.readers import read

pytestmark = pytest.mark.full

SMALL = {"ocr_detect": ["model.inputs.x.shape=[1,3,160,160]"]}
"""Overrides that leave the graph as it is and spare time."""
TOLERANCE = 1e-4
"""Of the range of an output, which noise makes next to nothing of a map of text: passes change the order of sums."""


RECIPES = sorted(path.stem for path in (shipped() / "recipes").glob("*.yaml") if not path.name.endswith(".lock.yaml"))


def draw(model: onnx.ModelProto, shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Images of any colour; of whole numbers, three words and the rest padding."""
    random = np.random.default_rng(0)
    feeds = {}
    for value in input_values(model):
        shape = shapes.get(value.name) or [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT:
            feeds[value.name] = random.uniform(-1, 1, shape).astype(np.float32)
        else:
            feeds[value.name] = np.zeros(shape, np.int64)
            feeds[value.name][:, :3] = 1
    return feeds


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_pass_leaves_the_floats_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str) -> None:
    config = compose([f"+recipe={recipe}", *SMALL.get(recipe, [])], shipped()).config
    for name, part in (config["components"] or {recipe: config}).items():
        with monkeypatch.context() as patches:
            hold(tmp_path / name, patches, part["source"], part["model"])


def hold(folder: Path, monkeypatch: pytest.MonkeyPatch, source: dict[str, Any], asked: dict[str, Any]) -> None:
    """Compare the floats after each pass that changed something."""
    keys = {key: source[key] for key in sources.KINDS[source["kind"]]}
    path = sources.fetch(source["kind"], folder=folder, sha256=source["sha256"], **keys)
    model = read(path)
    shapes = {name: entry["shape"] for name, entry in asked["inputs"].items()}
    feeds = draw(model, shapes)
    outputs = asked["outputs"] or [value.name for value in model.graph.output]
    expected = Session(model, outputs=outputs).run(feeds)
    changed = []

    def compare(name: str) -> None:
        session = Session(copy(model), threads=1)
        found = session.run({key: value for key, value in feeds.items() if key in session.inputs})
        assert set(outputs) <= set(found)
        for key in outputs:
            bound = TOLERANCE * max(float(np.ptp(expected[key])), 1e-2)
            np.testing.assert_allclose(found[key], expected[key], rtol=0, atol=bound, err_msg=f"{key} after {name}")
        changed.append(name)

    def watch(name: str, module: types.ModuleType) -> None:
        run = module.run

        def watched(*arguments: Any, **options: Any) -> Any:
            result = run(*arguments, **options)
            if result is None or result.changed:
                compare(name)
            return result

        monkeypatch.setattr(module, "run", watched)

    for name, module in vars(pipeline).items():
        if isinstance(module, types.ModuleType) and module.__name__.startswith("anfbuild.graph.passes."):
            watch(name, module)
    clean_in_place(model, shapes, asked["outputs"])
    assert "infer_shapes" in changed
    clamp_masks.run(model, -50.0)
    compare("clamp_masks")
    equalize.run(model)
    compare("equalize")
