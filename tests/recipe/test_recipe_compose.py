from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import anfbuild
from anfbuild.errors import RecipeError
from anfbuild.recipe import compose
from anfbuild.recipe.files import shipped


def test_a_recipe_is_complete_and_plain(project: Path) -> None:
    recipe = compose(["+recipe=plain"], project)
    assert recipe.name == recipe.config["name"] == "plain"
    assert recipe.config["source"]["path"] == "model.onnx"
    assert recipe.config["quantization"] == {"scheme": "int8_per_channel"}
    assert recipe.config["model"]["inputs"]["x"] == {
        "shape": [1, 3, 32, 32],
        "dtype": "float32",
        "layout": "NCHW",
        "channels": "RGB",
        "scale": 1.0,
        "mean": [0.0, 0.0, 0.0],
        "std": [1.0, 1.0, 1.0],
    }
    assert recipe.config["goal"] == "report"
    assert recipe.config["components"] == recipe.components == {}
    assert yaml.safe_load(yaml.safe_dump(recipe.config)) == recipe.config


def test_the_recipe_that_comes_along_composes(project: Path) -> None:
    for name, like in {
        "source/ppocr_det": "made",
        "dataset/synthetic_text": "made",
        "task/text_detection": "made",
    }.items():
        path = project / "conf" / f"{name}.yaml"
        shutil.copy(path.with_stem(like), path)
    recipe = compose(["+recipe=ocr_detect"], project)
    assert recipe.config["model"]["inputs"]["x"]["scale"] == pytest.approx(1 / 255, rel=1e-12)
    assert recipe.config["model"]["outputs"] == ["sigmoid_0.tmp_0"]
    assert recipe.config["gates"]["latency_ms"] == {"min": None, "max": 25.0}


def test_a_recipe_in_a_folder_is_named_with_dots(project: Path, write_recipe: Callable[..., None]) -> None:
    write_recipe(name="vision/det")
    assert compose(["+recipe=vision/det"], project).name == "vision.det"


def test_the_projects_own_files_come_first(project: Path, write_recipe: Callable[..., None]) -> None:
    write_recipe("goal: mine\n", name="ocr_detect")
    recipe = compose(["+recipe=ocr_detect"], project)
    assert recipe.config["goal"] == "mine"
    assert recipe.config["target"]["name"] == "One"


def test_the_primary_config_of_another_hydra_application_is_left_alone(project: Path) -> None:
    (project / "conf" / "config.yaml").write_text("defaults: [db: mysql]\nlearning_rate: 0.1\n")
    assert compose(["+recipe=plain"], project).config["goal"] == "report"


def test_the_command_line_beats_the_recipe(project: Path, write_recipe: Callable[..., None]) -> None:
    write_recipe("dataset: {samples: 5}\n")
    recipe = compose(["+recipe=mine", "target=made", "dataset.samples=3"], project)
    assert recipe.config["target"]["arch"] == "v99"
    assert recipe.config["target"]["rates"]["fitted"] == ["w8a8"]
    assert recipe.config["dataset"]["samples"] == 3
    assert recipe.config["dataset"]["seed"] == 7


def test_a_recipe_builds_on_another(project: Path, write_recipe: Callable[..., None]) -> None:
    text = "defaults:\n  - plain\n  - override /target: made\n  - _self_\nevaluation: {samples: 2}\n"
    write_recipe(text=text)
    write_recipe(name="deeper/one", text="defaults:\n  - /recipe/mine\n  - override /quantization: made\n  - _self_\n")
    recipe = compose(["+recipe=deeper/one"], project)
    assert recipe.name == "deeper.one"
    assert recipe.config["target"]["soc"] == "made"
    assert recipe.config["quantization"]["scheme"] == "a16w8"
    assert recipe.config["evaluation"]["samples"] == 2


def test_the_outer_recipes_choice_wins(project: Path, write_recipe: Callable[..., None]) -> None:
    write_recipe(name="base", text="defaults:\n  - plain\n  - override /target: made\n  - _self_\n")
    write_recipe(text="defaults:\n  - base\n  - override /target: sm8650\n  - _self_\n")
    assert compose(["+recipe=mine"], project).config["target"]["soc"] == "sm8650"


def test_references_are_resolved(project: Path, write_recipe: Callable[..., None]) -> None:
    write_recipe("evaluation: {samples: '${dataset.samples}'}\n")
    assert compose(["+recipe=mine", "dataset.samples=3"], project).config["evaluation"]["samples"] == 3


def test_gates_and_inputs_are_added_and_removed(project: Path) -> None:
    overrides = ["+recipe=plain", "+gates.power_w={max: 3}", "~gates.accuracy_drop", "+model.inputs.y.shape=[1]"]
    config = compose(overrides, project).config
    assert config["gates"] == {"power_w": {"min": None, "max": 3.0}}
    assert config["model"]["inputs"]["y"]["shape"] == [1]


def test_names_of_tensors_may_hold_dots_and_colons(project: Path, write_recipe: Callable[..., None]) -> None:
    text = "    image.1: {shape: [1, 3, 8, 8]}\n    'y:0': {shape: [2]}\n"
    write_recipe(text)
    recipe = compose(["+recipe=mine"], project)
    assert list(recipe.config["model"]["inputs"]) == ["x", "image.1", "y:0"]
    assert recipe.place("model.inputs.image.1.shape[1]") == "recipes/mine.yaml:9"


def test_places(project: Path, write_recipe: Callable[..., None]) -> None:
    write_recipe("target:\n  vtcm_mb: 2\n")
    recipe = compose(["+recipe=mine", "target=made", "dataset.samples=3"], project)
    assert recipe.place("target.arch") == "conf/target/made.yaml:5"
    assert recipe.place("target.vtcm_mb") == "recipes/mine.yaml:10"
    assert recipe.place("dataset.samples") == "command line"
    assert recipe.place("dataset.seed") == "conf/dataset/made.yaml:2"
    assert recipe.place("model.inputs.x.shape[3]") == "recipes/mine.yaml:8"
    added = compose(["+recipe=mine", "+model.inputs.y.shape=[1]"], project)
    assert added.place("model.inputs.y") == "command line"
    assert added.place("model.inputs") == "recipes/mine.yaml:7"


def test_composing_twice_gives_the_same_and_leaves_nothing(project: Path) -> None:
    first = compose(["+recipe=plain", "target=made"], project).config
    compose(["+recipe=plain", "dataset.samples=1"], project)
    assert compose(["+recipe=plain", "target=made"], project).config == first
    assert sorted(path.name for path in project.iterdir()) == ["conf", "recipes"]


def test_another_folder_than_the_working_directory(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = project / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    recipe = compose(["+recipe=plain"], project)
    assert recipe.place("model") == f"{project.as_posix()}/recipes/plain.yaml:6"
    with pytest.raises(RecipeError, match="there is no recipe 'plain'"):
        compose(["+recipe=plain"], elsewhere)


def test_an_installed_package_brings_its_own_files(project: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    package = Path(anfbuild.__file__).parent
    shutil.copytree(package, site / "anfbuild", ignore=shutil.ignore_patterns("__pycache__", "_data"))
    for folder in ("conf", "recipes"):
        shutil.copytree(shipped() / folder, site / "anfbuild" / "_data" / folder)
    (site / "anfbuild" / "_data" / "recipes" / "shipped.yaml").write_text("defaults: [plain, _self_]\n")
    run = subprocess.run(
        [sys.executable, "-m", "anfbuild", "+recipe=shipped", "--cfg", "job"],
        cwd=project,
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert yaml.safe_load(run.stdout)["name"] == "shipped"


@pytest.mark.parametrize("name", ["123", "null", "true", "1e3", "0x1", "a-b_c", "v1/2"])
def test_a_name_is_the_text_of_the_override(project: Path, write_recipe: Callable[..., None], name: str) -> None:
    write_recipe("evaluation: {samples: 5}\n", name=name)
    for override in (f"+recipe={name}", f"+recipe='{name}'", f'+recipe="{name}"'):
        recipe = compose([override], project)
        assert (recipe.name, recipe.config["evaluation"]["samples"]) == (name.replace("/", "."), 5)
        assert recipe.place("evaluation.samples") == f"recipes/{name}.yaml:9"


@pytest.mark.parametrize("name", ["a.b", "a b", "名", ".hidden", "a/.b", "a$b"])
def test_a_file_with_another_name_is_no_recipe(project: Path, write_recipe: Callable[..., None], name: str) -> None:
    write_recipe(name=name)
    with pytest.raises(RecipeError, match="a name holds letters") as caught:
        compose([f"+recipe='{name}'"], project)
    assert "Rename the file" in str(caught.value) or "did you mean" in str(caught.value)
    assert name not in caught.value.choices


def test_what_is_no_file_is_no_recipe(project: Path) -> None:
    recipes = project / "recipes"
    (recipes / "folder.yaml").mkdir()
    (recipes / "dangling.yaml").symlink_to("nowhere.yaml")
    (recipes / "loop.yaml").symlink_to("loop.yaml")
    os.mkfifo(recipes / "fifo.yaml")
    assert compose(["+recipe=plain"], project, project / "memo").name == "plain"
    for name in ("folder", "dangling", "loop", "fifo"):
        with pytest.raises(RecipeError, match="there is no recipe"):
            compose([f"+recipe={name}"], project, project / "memo")


def test_what_can_be_removed(project: Path) -> None:
    overrides = ["+recipe=plain", "+gates.latency_ms={max: 3}"]
    assert compose(overrides, project).config["gates"]["latency_ms"]["max"] == 3
    assert list(compose([*overrides, "~gates.latency_ms"], project).config["gates"]) == ["accuracy_drop"]
    assert compose(["+recipe=plain", "~task.threshold"], project).config["task"] == {"kind": "made_task"}


def test_a_task_without_a_kind(project: Path) -> None:
    (project / "conf" / "task" / "made.yaml").write_text("threshold: 0.5\n")
    with pytest.raises(RecipeError, match="has no value"):
        compose(["+recipe=plain"], project)
