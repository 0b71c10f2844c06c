from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from anfbuild.errors import RecipeError
from anfbuild.recipe import compose

PLAIN = "+recipe=plain"


def refusal(project: Path, *overrides: str) -> RecipeError:
    with pytest.raises(RecipeError) as caught:
        compose(overrides, project)
    assert caught.value.exit_code == 2
    return caught.value


@pytest.mark.parametrize(
    ("overrides", "what", "hint"),
    [
        ([], "no recipe is chosen", "+recipe=NAME"),
        (["+recipie=plain"], "did you mean '+recipe'", ""),
        (["recipe=plain"], "does not choose a recipe", "Write +recipe=plain"),
        (["+recipe=plian"], "there is no recipe 'plian'", "did you mean 'plain'?"),
        (["+recipe=../recipes/plain"], "there is no recipe", ""),
        (["+recipe=plain,mine"], "exactly one recipe", "-m +recipe=A,B"),
        ([PLAIN, "+recipe=plain"], "exactly one recipe", ""),
        ([PLAIN, "target=sm8651"], "there is no target 'sm8651'", "did you mean 'sm8650'?"),
        ([PLAIN, "target=null"], "there is no target null", "conf/target/NAME.yaml"),
        ([PLAIN, "+target=made"], "has a 'target' already", "without the +"),
        ([PLAIN, "~target"], "exactly one 'target'", "target=CHOICE"),
        ([PLAIN, "target=a,b"], "several values to a single build", "-m"),
        ([PLAIN, "targt=made"], "there is no key 'targt'", "did you mean 'target'?"),
        ([PLAIN, "dataset.sampels=3"], "there is no key 'sampels' in 'dataset'", "did you mean 'samples'?"),
        ([PLAIN, "+model.typo=3"], "there is no key 'typo' in 'model'", ""),
        ([PLAIN, "++model.typo=3"], "there is no key 'typo' in 'model'", ""),
        ([PLAIN, "+some/group=3"], "there is no key 'some/group'", ""),
        ([PLAIN, "model.inputs.y.scale=3"], "there is no key 'y' in 'model.inputs'", ""),
        ([PLAIN, "task.treshold=1"], "there is no key 'treshold' in 'task'", "did you mean 'threshold'?"),
        ([PLAIN, "+task.treshold=1"], "there is no option 'treshold'", "did you mean 'threshold'?"),
        ([PLAIN, "dataset.samples=many"], "value 'many' is not a whole number", ""),
        ([PLAIN, "dataset.samples=1.5"], "value '1.5' is not a whole number", ""),
        ([PLAIN, "dataset.samples=0"], "must be at least 1", ""),
        ([PLAIN, "dataset.seed=-1"], "must be at least 0", ""),
        ([PLAIN, "+target.rates.hvx=0"], "there is no key 'hvx' in 'target.rates'", ""),
        ([PLAIN, "model.outputs=[]"], "is an empty list", ""),
        ([PLAIN, "target.vtcm_mb=0"], "must be above 0", ""),
        ([PLAIN, "calibration.percentile=101"], "must be at most 100", ""),
        ([PLAIN, "model.inputs.x.scale=nan"], "not a finite number", ""),
        ([PLAIN, "model.inputs.x.shape=[1,3,-1,4]"], "'model.inputs.x.shape[2]' is -1", ""),
        ([PLAIN, "model.inputs.x.shape=[1,3,N,4]"], "'model.inputs.x.shape[2]' cannot be set", ""),
        ([PLAIN, "model.inputs.x.shape=3"], "it holds a list", ""),
        ([PLAIN, "model.inputs.x.shape=[]"], "is an empty list", ""),
        ([PLAIN, "model.inputs.x.layout=NCWH"], "cannot be 'NCWH'", "did you mean 'NCHW'?"),
        ([PLAIN, "model.inputs.x.mean=[0.5]"], "mean holds 1 values", "Give 3"),
        ([PLAIN, "model.inputs.x.std=[1,0,1]"], "must be at least 1e-06", ""),
        ([PLAIN, "model.inputs.x.std=[1,1,1e7]"], "must be at most 1000000", ""),
        ([PLAIN, "model.inputs.x.mean=[1,-1e7,1]"], "must be at least -1000000", ""),
        ([PLAIN, "model.inputs.x.mean=[1,inf,1]"], "not a finite number", ""),
        ([PLAIN, "model.inputs.x.scale=1e7"], "must be at most 1000000", ""),
        ([PLAIN, "model.inputs.x.shape=[1,3,1000001,4]"], "must be at most 1000000", ""),
        ([PLAIN, "dataset.samples=1000001"], "must be at most 1000000", ""),
        ([PLAIN, "dataset.samples=1" + "0" * 400], "must be at most 1000000", ""),
        ([PLAIN, "evaluation.samples=1000001"], "must be at most 1000000", ""),
        ([PLAIN, "emulate.samples=1000001"], "must be at most 1000000", ""),
        ([PLAIN, "dataset.size=16385"], "must be at most 16384", ""),
        ([PLAIN, "target.rates.conv_tmac_s=1e10"], "must be at most 1000000000", ""),
        ([PLAIN, "target.rates.fixed_ms=1e10"], "must be at most 1000000000", ""),
        ([PLAIN, "backend.kind=gpu"], "cannot be 'gpu'", ""),
        ([PLAIN, "performance.mode=bust"], "cannot be 'bust'", "did you mean 'burst'?"),
        ([PLAIN, "quantization.scheme=null"], "null is no value for it", ""),
        ([PLAIN, "source.private=maybe"], "neither true nor false", ""),
        ([PLAIN, "~dataset.samples"], "cannot be removed", ""),
        ([PLAIN, "~model"], "'model' cannot be removed", "model=VALUE"),
        ([PLAIN, "~model.inputs"], "cannot be removed", ""),
        ([PLAIN, "~evaluation"], "'evaluation' cannot be removed", ""),
        ([PLAIN, "~emulate"], "'emulate' cannot be removed", ""),
        ([PLAIN, "~components"], "'components' cannot be removed", ""),
        ([PLAIN, "~variants"], "'variants' cannot be removed", ""),
        ([PLAIN, "~goal=report"], "'goal' cannot be removed", ""),
        ([PLAIN, "~name"], "'name' cannot be removed", ""),
        ([PLAIN, "~task.kind"], "'task.kind' cannot be removed", ""),
        ([PLAIN, "model=3"], "'model' holds a mapping", ""),
        ([PLAIN, "+gates.power_w=3"], "'gates.power_w' holds a mapping", ""),
        ([PLAIN, "+gates.power_w={min: 3, max: 2}"], "can never hold", ""),
        ([PLAIN, "hydra.verbose=true"], "is an option of Hydra", "-m"),
        ([PLAIN, "+hydra.job.env_set.X=1"], "is an option of Hydra", ""),
        ([PLAIN, "hydra/launcher=basic"], "is an option of Hydra", ""),
        ([PLAIN, "+hydra={verbose: true}"], "is an option of Hydra", ""),
        ([PLAIN, "+dataset@hydra.job=made"], "is an option of Hydra", ""),
        ([PLAIN, "name=other"], "named by its file", ""),
        ([PLAIN, "components=[a,b]"], "holds a mapping: the name of each component", ""),
        ([PLAIN, "goal=???"], "'goal' has no value", ""),
        ([PLAIN, "dataset.seed=${oc.env:HOME}"], "calls a resolver", ""),
        ([PLAIN, "dataset.size=${dataset.seeed}"], "'dataset.size' refers to nothing", "did you mean 'seed'?"),
        ([PLAIN, "+model._target_=os.system"], "`_target_` is refused", ""),
        ([PLAIN, "x=" + "[" * 5000 + "]" * 5000], "nested too deep", ""),
        ([PLAIN, "dataset.seed=1" + "0" * 5000], "cannot be read", ""),
        ([PLAIN, "x=["], "cannot read the override 'x=['", "KEY=VALUE"),
    ],
)
def test_the_command_line(project: Path, overrides: list[str], what: str, hint: str) -> None:
    error = refusal(project, *overrides)
    assert what in error.what
    assert error.where == "command line"
    assert hint in (error.remedy or "") or hint == ""


@pytest.mark.parametrize(
    ("more", "line", "what"),
    [
        ("modle: {}\n", 9, "there is no key 'modle'"),
        ("dataset:\n  samples: many\n", 10, "not a whole number"),
        ("evaluation:\n  samples: 0\n", 10, "must be at least 1"),
        ("    y: {shape: [1], layuot: NHWC}\n", 9, "there is no key 'layuot' in 'model.inputs.y'"),
        ("task: {treshold: 3}\n", 9, "there is no option 'treshold'"),
        ("task: {threshold: [1]}\n", 9, "holds one value"),
        ("gates: {latency_ms: {max: 3, max: 4}}\n", 9, "'max' is given twice"),
        ("gates:\n  latency_ms: 3\n", 10, "'gates.latency_ms' holds a mapping"),
        ("gates:\n  latency_ms: {}\n", 10, "has no limit"),
        ("a: b: c\n", 9, "not YAML"),
        ("\tx: 3\n", 9, "not YAML"),
        ("quantization: int8\n", 9, "'quantization' holds a mapping, not 'int8'"),
        ("emulate: 3\n", 9, "'emulate' holds a mapping, not 3"),
        ("dataset:\n  size: ${oc.env:SIZE}\n", 10, "calls a resolver"),
        ("dataset:\n  size: ${dataset.sede}\n", 10, "'dataset.size' refers to nothing"),
        ("dataset: {_target_: os.system}\n", 9, "`_target_` is refused"),
        ("hydra: {verbose: true}\n", 9, "nothing of Hydra"),
        ("dataset:\n  size: ${\n", 10, "cannot be read"),
        ("name: x\n", 9, "named by its file"),
    ],
)
def test_a_recipe(project: Path, write_recipe: Callable[..., None], more: str, line: int, what: str) -> None:
    write_recipe(more)
    error = refusal(project, "+recipe=mine")
    assert what in error.what
    assert error.where == f"recipes/mine.yaml:{line}"


@pytest.mark.parametrize(
    ("defaults", "line", "what", "hint"),
    [
        ("  - override /source: maed\n", 2, "there is no source 'maed'", "did you mean 'made'?"),
        ("  - override /suorce: made\n", 2, "there is no group 'suorce'", "did you mean 'source'?"),
        ("  - source: made\n", 2, "does not choose a group", "- override /source: made"),
        ("  - override /source: made\n  - plain\n", 3, "stands after a choice", "first"),
        ("  - plian\n", 2, "there is no recipe 'plian' to build on", "did you mean 'plain'?"),
        ("  - mine\n", 2, "builds on itself", ""),
        ("  - plain\n  - 3\n", 3, "no entry of a defaults list", ""),
        ("  - {a: b, c: d}\n", 2, "must hold one group", ""),
    ],
)
def test_a_defaults_list(
    project: Path, write_recipe: Callable[..., None], defaults: str, line: int, what: str, hint: str
) -> None:
    write_recipe(text=f"defaults:\n{defaults}")
    error = refusal(project, "+recipe=mine")
    assert what in error.what
    assert error.where == f"recipes/mine.yaml:{line}"
    assert hint in (error.remedy or "")


def test_a_group_that_must_be_chosen(project: Path, write_recipe: Callable[..., None]) -> None:
    write_recipe(text="defaults: [override /source: made, override /dataset: made]\n")
    error = refusal(project, "+recipe=mine")
    assert (error.what, error.where) == ("no task is chosen", "recipes/mine.yaml")
    assert "made" in error.choices


def test_a_value_that_must_be_given(project: Path) -> None:
    error = refusal(project, PLAIN, "source=unset")
    assert (error.what, error.where) == ("'source.path' has no value", "conf/source/unset.yaml:2")
    assert compose([PLAIN, "source=unset", "source.path=a.onnx"], project).config["source"]["path"] == "a.onnx"


def test_a_file_of_a_group(project: Path) -> None:
    (project / "conf" / "target" / "broken.yaml").write_text("soc: a\nsoc_modle: 3\n")
    error = refusal(project, PLAIN, "target=broken")
    assert error.where == "conf/target/broken.yaml:2"
    assert "soc_modle" in error.what
    assert "soc_model" in error.choices


def test_a_resolver_in_a_file_of_a_group(project: Path) -> None:
    (project / "conf" / "target" / "broken.yaml").write_text("# a\nsoc: ${now:%Y}\n")
    assert refusal(project, PLAIN, "target=broken").where == "conf/target/broken.yaml:2"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("soc: a\nhydra: {job: {env_set: {X: 1}}}\n", 2),
        ("# @package _global_\nhydra: {job: {env_set: {X: 1}}}\n", 2),
        ("# @package hydra.job.env_set\nX: 1\n", 1),
        ("# @package _global_.hydra.job\nenv_set: {X: 1}\n", 1),
        ("defaults:\n  - /dataset@hydra.job.env_set: made\n", 2),
        ("defaults:\n  - _self_\n  - override /hydra/launcher: basic\n", 3),
    ],
)
def test_files_do_not_reach_into_hydra(project: Path, write_recipe: Callable[..., None], text: str, line: int) -> None:
    (project / "conf" / "target" / "mine.yaml").write_text(text)
    error = refusal(project, PLAIN, "target=mine")
    assert (error.what, error.where) == ("a file says nothing of Hydra itself", f"conf/target/mine.yaml:{line}")
    write_recipe(text=text)
    assert refusal(project, "+recipe=mine").where == f"recipes/mine.yaml:{line}"


def test_choices_are_those_of_the_node(project: Path) -> None:
    assert refusal(project, PLAIN, "quantization.typo=1").choices == ["scheme"]
    assert {"made", "sm8650"} <= set(refusal(project, PLAIN, "target=x").choices)
    assert {"plain", "ocr_detect"} <= set(refusal(project).choices)


def test_a_file_that_is_no_text(project: Path) -> None:
    (project / "recipes" / "mine.yaml").write_bytes(b"a: \xff\n")
    error = refusal(project, "+recipe=mine")
    assert error.where == "recipes/mine.yaml"
