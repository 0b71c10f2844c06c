"""Of a recipe of several components: a value of one is in the keys of that one's steps alone."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from anfbuild.cli.build import make
from anfbuild.engine.run import Build
from anfbuild.recipe import Recipe, compose
from anfbuild.steps import GRAPH, JOINT

CHANGES: dict[str, tuple[Any, set[str]]] = {
    "model.outputs": (["output_crop"], {"convert", "place"}),
    "dataset.seed": (7, {"dataset"}),
    "dataset.size": (300, {"dataset"}),
    "emulate.samples": (1, {"emulate"}),
    "task.fraction": (0.04, {"baseline", "evaluate", "package"}),
    "quantization.scheme": ("int8", {"quantize", "place", "report"}),
    "calibration.estimator": ("minmax", {"quantize", "report"}),
    "source.license": ("MIT", {"package"}),
    "gates": ({"latency_ms": {"min": None, "max": 1.0}}, {"report"}),
}
"""Key of a component -> another value, and the steps whose own part of the key changes with it."""


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    return compose(["+recipe=hand_gesture"], tmp_path_factory.mktemp("project"))


def graph(recipe: Recipe, root: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    monkeypatch.setenv("ANFBUILD_CACHE", str(root / "store"))
    return make(recipe, root, lambda _: None)


def own(build: Build) -> dict[str, Any]:
    """Step -> the part of its key that comes from the recipe."""
    return {name: build.key_fields(name) for name in build.ancestors("report")}


@pytest.mark.parametrize("key", CHANGES)
def test_a_value_of_one_component_is_in_its_own_keys(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    value, steps = CHANGES[key]
    config = copy.deepcopy(recipe.config)
    node = config["components"]["recrop"]
    *above, last = key.split(".")
    for name in above:
        node = node[name]
    assert node[last] != value
    node[last] = value
    before = own(graph(recipe, tmp_path, monkeypatch))
    after = own(graph(Recipe(recipe.name, config, recipe.place), tmp_path, monkeypatch))
    assert {name for name in before if before[name] != after[name]} == {f"{step}[recrop]" for step in steps}


def test_the_graph_has_every_step_of_each_component_and_the_joint_ones(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = graph(recipe, tmp_path, monkeypatch)
    planned = set(GRAPH) - {"diagnose", "lint"}
    names = {f"{step}[{component}]" for step in planned for component in ("landmark", "recrop")}
    assert set(build.ancestors("report")) == names | set(JOINT)
    assert set(build.needs("package")) == {"package[landmark]", "package[recrop]"}
    assert set(own(build)["report"]) == {"name", "gates.*"}
    assert build.key("assets[landmark]") == build.key("assets[recrop]") is not None


def test_what_is_private_in_one_component_is_so_with_what_is_made_from_it(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = copy.deepcopy(recipe.config)
    config["components"]["recrop"]["source"]["private"] = True
    build = graph(Recipe(recipe.name, config, recipe.place), tmp_path, monkeypatch)
    private = build._private
    assert {"fetch[recrop]", "convert[recrop]", "package", "report"} <= private
    assert not any(name.endswith("[landmark]") for name in private)
