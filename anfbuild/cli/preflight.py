"""What can be refused before anything is built: versions, the chip, what the chip cannot do, gates, names.

Only the light parts of the rooms are imported here; a build that has nothing to do pays for this each time.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anfbuild.errors import RecipeError
from anfbuild.recipe.recipe import components_of


def check(config: dict[str, Any]) -> list[dict[str, Any]]:
    """Refuse a recipe that cannot be built here. Returns the version matrix, part by part, as found on this host.

    Raises VersionError naming the part, or RecipeError naming the key, the value and the choices.
    """
    from anfbuild.cli.targets import check_target

    parts = [dict(part) for part in _installed(tuple(sorted(config["versions"].items())))]
    check_target(config["target"], config["performance"]["mode"])
    components = components_of(config)
    for name, own in components.items():
        try:
            _check_model(own)
        except RecipeError as error:
            if (error.where or "").partition(".")[0] in own:
                error.where = f"components.{name}.{error.where}"
            raise
    if components:
        from anfbuild.report.gates import check as check_gates

        check_gates(config["gates"])
    else:
        _check_model(config)
    return parts


@functools.cache
def _installed(required: tuple[tuple[str, str], ...]) -> list[dict[str, Any]]:
    """The version matrix as found: once a process, since a sweep's jobs ask for the same."""
    from anfbuild import compat

    return [part.to_json() for part in compat.check(dict(required))]


def _check_model(config: Mapping[str, Any]) -> None:
    """Refuse what a recipe, or a component as it sees it, says of its model and data."""
    from anfbuild import datasets, sources, tasks
    from anfbuild.quantization.estimators import check as check_estimator
    from anfbuild.quantization.schemes import check as check_scheme
    from anfbuild.report.gates import check as check_gates

    check_scheme(config["quantization"]["scheme"], config["target"]["arch"])
    check_estimator(config["calibration"]["estimator"], config["calibration"]["percentile"])
    check_gates(config["gates"])
    task = dict(config["task"])
    tasks.check(task.pop("kind"), task)
    tasks.check_inputs(config["task"]["kind"], config["model"]["inputs"])
    source = {k: v for k, v in config["source"].items() if k not in ("license", "private", "vocabulary")}
    sources.check(source.pop("kind"), **source)
    vocabulary = dict(config["source"]["vocabulary"])
    if (kind := vocabulary.pop("kind")) is not None:
        sources.check(kind, **vocabulary, where="source.vocabulary")
    data = config["dataset"]
    _check_samples(config["task"]["kind"], data["kind"])
    datasets.check(
        data["kind"],
        samples=data["samples"],
        seed=data["seed"],
        size=data["size"],
        path=None if data["path"] is None else Path(data["path"]),
        assets=bool(data["assets"]),
    )
    if config["emulate"]["samples"] > config["evaluation"]["samples"]:
        raise RecipeError(
            f"emulate.samples ({config['emulate']['samples']}) is more than evaluation.samples "
            f"({config['evaluation']['samples']})",
            where="emulate.samples",
            remedy="The emulated samples are the first of the evaluated ones: raise evaluation.samples.",
        )


def _check_samples(task: str, dataset: str) -> None:
    """RecipeError where a task on texts is given images, or the reverse. What plug-ins offer is not known here."""
    from anfbuild import datasets, tasks

    if task not in tasks.KINDS or dataset not in datasets.KINDS:
        return
    wanted, given = task in tasks.ON_TEXTS, dataset in datasets.OF_TEXTS
    if wanted != given:
        fitting = [kind for kind in datasets.KINDS if (kind in datasets.OF_TEXTS) == wanted]
        raise RecipeError(
            f"task {task!r} wants {'texts' if wanted else 'images'}, but the samples of {dataset!r} are "
            f"{'texts' if given else 'images'}",
            where="dataset.kind",
            choices=fitting,
            remedy="Choose another data set, or another task.",
        )
