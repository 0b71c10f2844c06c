"""Recipes of several components: what each is, where that was said, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from anfbuild.errors import RecipeError
from anfbuild.recipe import Recipe, compose

TWO = """\
defaults:
  - override /dataset: made
  - override /task: made
  - _self_
quantization: {scheme: int8}
gates: {latency_ms: {max: 9}}
components:
  landmark:
    source: made
    model: {inputs: {x: {shape: [1, 3, 32, 32]}}}
    gates: {accuracy_drop: {max: 0.1}}
  recrop:
    source: {choice: made, path: recrop.onnx}
    model: {inputs: {y: {shape: [1, 64, 64, 3], layout: NHWC}}}
    quantization: made
    dataset: {size: 128}
"""


@pytest.fixture
def two(write_recipe: Callable[..., None], project: Path) -> Callable[..., Recipe]:
    """Compose the recipe `two`, with `more` below it and overrides."""

    def composed(*overrides: str, more: str = "", memory: Path | None = None) -> Recipe:
        write_recipe(name="two", text=TWO + more)
        return compose(["+recipe=two", *overrides], project, memory)

    return composed


def refusal(two: Callable[..., Recipe], *overrides: str, more: str = "") -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        two(*overrides, more=more)
    return caught.value


def test_a_component_refines_the_top_level(two: Callable[..., Recipe]) -> None:
    parts = two().components
    assert list(parts) == ["landmark", "recrop"]
    landmark, recrop = parts.values()
    assert (landmark["source"]["path"], recrop["source"]["path"]) == ("model.onnx", "recrop.onnx")
    assert (landmark["quantization"]["scheme"], recrop["quantization"]["scheme"]) == ("int8", "a16w8")
    assert (landmark["dataset"]["size"], recrop["dataset"]["size"]) == (64, 128)
    assert (list(landmark["model"]["inputs"]), list(recrop["model"]["inputs"])) == (["x"], ["y"])
    assert landmark["task"] == recrop["task"] == {"kind": "made_task", "threshold": 0.5}
    assert landmark["target"] == recrop["target"] == two().config["target"]
    assert (landmark["name"], recrop["name"]) == ("two.landmark", "two.recrop")


def test_gates_are_those_of_the_whole_or_of_the_component(two: Callable[..., Recipe]) -> None:
    recipe = two()
    assert set(recipe.config["gates"]) == {"accuracy_drop", "latency_ms"}
    assert [set(part["gates"]) for part in recipe.components.values()] == [{"accuracy_drop"}, set()]
    assert recipe.components["landmark"]["gates"]["accuracy_drop"]["max"] == 0.1


def test_the_command_line_chooses_and_refines_for_one_or_for_all(two: Callable[..., Recipe]) -> None:
    def schemes(*overrides: str) -> list[str]:
        return [part["quantization"]["scheme"] for part in two(*overrides).components.values()]

    assert schemes("quantization=int8_per_channel") == ["int8", "a16w8"]  # the recipe refines what is chosen
    assert schemes("quantization.scheme=a16w16") == ["a16w16", "a16w8"]  # as the recipe's own choice of a group is
    assert schemes("components.recrop.quantization=int8_per_channel") == ["int8", "int8_per_channel"]
    assert schemes("components.landmark.quantization.choice=made") == ["a16w8", "a16w8"]
    assert schemes("components.landmark.quantization.scheme=a16w16") == ["a16w16", "a16w8"]
    assert schemes("~components.landmark") == ["a16w8"]
    more = "+components.third={source: made, model: {inputs: {z: {shape: [1]}}}, quantization: made}"
    assert schemes(more) == ["int8", "a16w8", "a16w8"]
    gates = two("+components.recrop.gates.partitions={max: 1}").components["recrop"]["gates"]
    assert gates == {"partitions": {"min": None, "max": 1.0}}


def test_a_recipe_refines_and_chooses_again_what_it_builds_on(
    two: Callable[..., Recipe], write_recipe: Callable[..., None], project: Path
) -> None:
    two()
    text = "defaults: [two, _self_]\ncomponents:\n  recrop: {quantization: int8_per_channel, source: {path: b.onnx}}\n"
    write_recipe(name="more", text=text)
    recrop = compose(["+recipe=more"], project).components["recrop"]
    assert recrop["quantization"]["scheme"] == "int8_per_channel"
    assert (recrop["source"]["kind"], recrop["source"]["path"]) == ("file", "b.onnx")
    assert recrop["dataset"]["size"] == 128


def test_a_reference_means_the_component_s_own_value(two: Callable[..., Recipe]) -> None:
    parts = two(more="evaluation: {samples: '${dataset.size}'}\n").components
    assert [part["evaluation"]["samples"] for part in parts.values()] == [64, 128]


def test_places_are_those_of_the_component_of_its_choice_or_of_the_recipe(two: Callable[..., Recipe]) -> None:
    place = two("components.landmark.dataset.seed=3").place
    assert place("components.recrop.source.path") == "recipes/two.yaml:13"
    assert place("components.landmark.source.path") == "conf/source/made.yaml:2"
    assert place("components.recrop.quantization.scheme") == "conf/quantization/made.yaml:1"
    assert place("components.landmark.quantization.scheme") == "recipes/two.yaml:5"
    assert place("components.landmark.dataset.size") == "conf/dataset/made.yaml:4"
    assert place("components.landmark.dataset.seed") == "command line"
    assert place("components.landmark.gates.accuracy_drop.max") == "recipes/two.yaml:11"
    assert place("components.recrop") == "recipes/two.yaml:12"
    assert place("gates.latency_ms") == "recipes/two.yaml:6"


def test_a_goal_may_be_a_step_of_a_component(two: Callable[..., Recipe]) -> None:
    for goal in ("goal=convert[landmark]", "goal='convert[landmark]'", "goal=convert"):
        assert two(goal).config["goal"] == goal.partition("=")[2].strip("'")


def test_it_is_remembered(two: Callable[..., Recipe], tmp_path: Path) -> None:
    first = two(memory=tmp_path / "memory")
    again = two(memory=tmp_path / "memory")
    assert len(list((tmp_path / "memory").iterdir())) == 1
    assert again.components == first.components
    assert again.place("components.recrop.source.path") == "recipes/two.yaml:13"


@pytest.mark.parametrize(
    ("more", "where", "what", "hint"),
    [
        ("    sorce: made\n", 17, "component 'recrop': there is no key 'sorce'", "did you mean 'source'?"),
        ("    target: made\n", 17, "there is no key 'target' in a component", "at the top of the recipe"),
        ("    calibration: {estimater: mse}\n", 17, "component 'recrop': there is no key 'estimater'", "'estimator'"),
        ("    calibration: nse\n", 17, "component 'recrop': there is no calibration 'nse'", "did you mean 'mse'?"),
        ("    calibration: {choice: nse}\n", 17, "there is no calibration 'nse'", "did you mean 'mse'?"),
        ("    calibration: [mse]\n", 17, "'calibration' holds a mapping, or names a file", ""),
        ("    emulate: 3\n", 17, "'emulate' holds a mapping", ""),
        ("    emulate: {samples: many}\n", 17, "component 'recrop': 'emulate.samples' cannot be set", ""),
        ("    emulate: {samples: 0}\n", 17, "'components.recrop.emulate.samples' is 0", ""),
        ("    task: {treshold: 1}\n", 17, "there is no option 'treshold'", "did you mean 'threshold'?"),
        ("    gates: {latency_ms: {min: 2, max: 1}}\n", 17, "can never hold", ""),
        ("    evaluation: {samples: '${dataset.siz}'}\n", 17, "refers to nothing", "did you mean 'size'?"),
        ("    calibration: {estimator: '${oc.env:HOME}'}\n", 17, "calls a resolver", ""),
        ("    calibration: {_target_: os.system}\n", 17, "`_target_` is refused", ""),
        ("  Third: {}\n", 17, "'Third' is no name for a component", ""),
        ("  main: {}\n", 17, "'main' is no name for a component", ""),
        ("  third:\n", 17, "'components.third' holds a mapping", ""),
        ("  third: {model: {inputs: {x: {shape: [1]}}}}\n", 17, "component 'third' has no source", "`source: CHOICE`"),
        ("  third: {source: unset, model: {inputs: {x: {shape: [1]}}}}\n", None, "third.source.path' has no value", ""),
        ("  third: {source: made}\n", 17, "'components.third.model.inputs' has no value", "third.model.inputs=VALUE"),
        ("target: {vtcm_mb: 0}\n", 17, "'target.vtcm_mb' is 0", ""),
    ],
)  # fmt: skip
def test_files_that_are_refused(two: Callable[..., Recipe], more: str, where: int | None, what: str, hint: str) -> None:
    error = refusal(two, more=more)
    assert what in error.what
    assert where is None or error.where == f"recipes/two.yaml:{where}"
    assert hint in (error.remedy or "") or hint == ""


@pytest.mark.parametrize(
    ("override", "what", "hint"),
    [
        ("components.landmrk.quantization=made", "there is no component 'landmrk'", "did you mean 'landmark'?"),
        ("components.landmark.quantization=mad", "component 'landmark': there is no quantization 'mad'", "'made'"),
        ("components.landmark.quantization.sheme=a", "component 'landmark': there is no key 'sheme'", "'scheme'"),
        ("components.landmark.target=made", "there is no key 'target' in a component", "at the top of the recipe"),
        ("components.landmark.dataset.samples=x", "component 'landmark': 'dataset.samples' cannot be set", ""),
        ("components.landmark=3", "'components.landmark' holds a mapping", ""),
        ("~components.landmark.dataset", "component 'landmark': 'dataset' cannot be removed", ""),
        ("components.landmark.dataset.samples=1,2", "gives several values to a single build", "-m"),
    ],
)
def test_overrides_that_are_refused(two: Callable[..., Recipe], override: str, what: str, hint: str) -> None:
    error = refusal(two, override)
    assert what in error.what
    assert error.where == "command line"
    assert hint in (error.remedy or "")


def test_components_that_are_no_mapping(write_recipe: Callable[..., None], project: Path) -> None:
    write_recipe("components: [a, b]\n")
    with pytest.raises(RecipeError, match="'components' holds a mapping") as caught:
        compose(["+recipe=mine"], project)
    assert caught.value.where == "recipes/mine.yaml:9"
