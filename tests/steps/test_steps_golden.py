"""Which steps read which value of a recipe: a change here is a change of what is built again."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anfbuild.cli.disagreement import agreed
from anfbuild.engine.key import key_values, read_slice
from anfbuild.recipe import compose
from anfbuild.simulator.compiled import COSTS
from anfbuild.steps import GRAPH

IMAGES = {"baseline", "calibrate", "emulate", "diagnose", "package"}
"""The steps that feed samples to a model, and the manifest, which tells a device how to."""
DECODE = {"baseline", "evaluate", "package"}
CHIP = {"prepare", "emulate", "diagnose", "package", "report"}
NOTHING: set[str] = set()

GOLDEN: dict[str, set[str]] = {
    "name": {"package", "report"},
    "components": NOTHING,  # one each so far, which the recipe's rules see to
    "variants": NOTHING,
    "goal": NOTHING,  # where to stop, not what to make
    "source.kind": {"fetch"},
    "source.path": {"fetch"},
    "source.url": {"fetch"},
    "source.repo": {"fetch"},
    "source.revision": {"fetch"},
    "source.distribution": {"fetch"},
    "source.name": {"fetch", "convert", "diagnose"},
    "source.file": {"fetch"},
    "source.python": {"fetch"},
    "source.platform": {"fetch"},
    "source.sha256": {"fetch"},
    "source.license": {"package"},
    "source.vocabulary.kind": {"fetch"},
    "source.vocabulary.path": {"fetch"},
    "source.vocabulary.distribution": {"fetch"},
    "source.vocabulary.file": {"fetch"},
    "source.vocabulary.sha256": {"fetch"},
    "source.private": NOTHING,  # said of the source, not read by any step
    "model.inputs.x.shape": {"convert", "place", "lint"} | IMAGES,
    "model.inputs.x.dtype": {"convert"} | IMAGES,
    "model.inputs.x.layout": IMAGES,
    "model.inputs.x.channels": IMAGES,
    "model.inputs.x.scale": IMAGES,
    "model.inputs.x.mean": IMAGES,
    "model.inputs.x.std": IMAGES,
    "model.outputs": {"convert", "place", "lint"},
    "model.strict": {"convert"},
    "dataset.kind": {"dataset", "report"},
    "dataset.path": {"dataset"},
    "dataset.seed": {"dataset"},
    "dataset.samples": {"dataset"},
    "dataset.size": {"dataset"},
    "dataset.license": {"dataset"},
    "dataset.private": NOTHING,  # said of the data, not read by any step
    "dataset.assets": {"assets"},
    "evaluation.samples": {"dataset"},
    "emulate.samples": {"emulate", "diagnose"},
    "task.kind": IMAGES | {"dataset", "evaluate"},
    "task.threshold": DECODE,
    "task.box_threshold": DECODE,
    "task.unclip_ratio": DECODE,
    "task.min_size": DECODE,
    "task.iou": DECODE,
    "condition.mask_clamp": {"condition"},
    "condition.equalize": {"condition"},
    "quantization.scheme": {"quantize", "place", "lint", "diagnose", "report"},
    "calibration.estimator": {"quantize", "report"},
    "calibration.percentile": {"quantize"},
    "target.soc": {"simulate", "place", "lint", "package", "report"},
    "target.name": {"package", "report"},
    "target.soc_model": CHIP | {"place", "lint"},
    "target.arch": CHIP,
    "target.vtcm_mb": CHIP | {"simulate", "place", "lint"},
    "target.rates.conv_tmac_s": {"simulate"},
    "target.rates.weight_gb_s": {"simulate"},
    "target.rates.fixed_ms": {"simulate"},
    "target.rates.estimate": {"simulate"},
    "target.rates.fitted": {"simulate"},
    **{f"target.rates.compiled.{name}": {"simulate"} for name in COSTS},
    "backend.kind": {"plan", "package", "report"},
    "performance.mode": {"simulate", "report"},
    "versions.onnxruntime": {"package", "report"},
    "versions.onnxruntime-qnn": {"package", "report"},
    "versions.qnn": {"package", "report"},
    **{
        f"gates.{gate}.{limit}": {"report"}
        for gate in ("accuracy_drop", "agreement_lsb", "htp_macs", "partitions", "latency_ms")
        for limit in ("min", "max")
    },
    "gates.agreement_lsb.max": {"report", "diagnose"},
}
"""Leaf of the composed recipe -> the steps whose own part of the key changes with it. What lies behind those steps is
built again only where their output changes."""

READ_WHOLE = {"dataset.assets"}


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted path and value; a mapping that a step reads as one value is one leaf."""
    if isinstance(value, dict) and value and path not in READ_WHOLE:
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def other(value: Any) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, list):
        return [*value, *(value[:1] or ["other"])]
    if isinstance(value, dict):
        return {**value, "other": {}}
    return f"{value or ''}other"


def changed(tree: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    result = copy.deepcopy(tree)
    *above, last = path.split(".")
    node = result
    for key in above:
        node = node[key]
    node[last] = value
    return result


def no_plugin(_group: str, _name: object) -> None:
    return None


def fields(tree: dict[str, Any], project: Path) -> dict[str, dict[str, Any]]:
    """Step -> the part of its key that comes from the recipe, as the build composes it."""
    required = [{"part": part, "required": version} for part, version in tree["versions"].items()]
    host = {"versions": required, "no_compiler": None, "runs_on": "emulator"}
    whole = {**tree, "host": host, "diagnosis": {"agreement_lsb": agreed(tree["gates"])}}
    return {name: key_values(read_slice(step.config, whole, project), str, no_plugin) for name, step in GRAPH.items()}


@pytest.fixture
def tree(tmp_path: Path) -> dict[str, Any]:
    for name in ("one", "other"):
        (tmp_path / name).touch()
    tree = compose(["+recipe=ocr_detect"], tmp_path).config
    tree["source"]["path"] = tree["dataset"]["path"] = "one"
    return tree


def test_every_leaf_is_in_the_table(tree: dict[str, Any]) -> None:
    assert {path for path, _ in leaves(tree)} == set(GOLDEN)


@pytest.mark.parametrize("path", GOLDEN)
def test_a_leaf_changes_the_keys_of_the_steps_that_read_it(tree: dict[str, Any], tmp_path: Path, path: str) -> None:
    value = dict(leaves(tree))[path]
    new = changed(tree, path, "other" if value == "one" else other(value))
    before, after = fields(tree, tmp_path), fields(new, tmp_path)
    assert {step for step in GRAPH if before[step] != after[step]} == GOLDEN[path]


def test_a_file_enters_the_key_by_its_content_alone(tree: dict[str, Any], tmp_path: Path) -> None:
    config = read_slice(GRAPH["fetch"].config, {**tree, "host": {}}, tmp_path)
    assert key_values(config, lambda _: "digest", no_plugin)["source.path"] == {"suffix": "", "sha256": "digest"}
