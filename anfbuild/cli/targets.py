"""Chips and schemes of verbs that work without a recipe: the files of conf/target by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.recipe.catalogue import Catalogue
from anfbuild.soc import find

FP16 = "fp16"


@dataclasses.dataclass(frozen=True)
class Chip:
    """One file of conf/target, its values checked."""

    name: str
    values: Mapping[str, Any]


def chip(name: str, project: Path) -> Chip:
    """The target of that name. Raises RecipeError: unknown, or values that are missing, negative or contradict."""
    catalogue = Catalogue(project.resolve())
    names = catalogue.choices("target")
    if name not in names:
        raise RecipeError(
            f"{did_you_mean(name, names)}there is no target {name!r}",
            where="target",
            choices=names,
            remedy="Choose one of these, or write conf/target/NAME.yaml.",
        )
    document = catalogue.document(f"target/{name}")
    values = dict(document.data) if document is not None else {}
    where = catalogue.shown(f"target/{name}")
    for key in ("soc", "soc_model", "arch", "vtcm_mb", "rates"):
        if values.get(key) is None:
            raise RecipeError(f"the target {name!r} has no {key!r}", where=where, remedy=f"Write {key} in its file.")
    if not isinstance(values["soc_model"], int) or values["soc_model"] < 0:
        raise RecipeError(f"soc_model is {values['soc_model']!r}, not the compiler's number of a chip", where=where)
    soc = find(values["soc_model"], where=f"{where}, soc_model")
    if values["arch"] != soc.arch:
        raise RecipeError(f"arch {values['arch']} is not that of {soc.name}", where=where, choices=[soc.arch])
    if not isinstance(values["vtcm_mb"], int) or not 0 < values["vtcm_mb"] <= soc.vtcm_mb:
        raise RecipeError(
            f"vtcm_mb is {values['vtcm_mb']!r}; {soc.name} has {soc.vtcm_mb}",
            where=where,
            choices=range(1, soc.vtcm_mb + 1),
        )
    return Chip(name, values)


def precision(scheme: str) -> str:
    """A scheme as measurements call it: "w8a8", ..., "float". Raises RecipeError for an unknown one."""
    from anfbuild.quantization import schemes

    if scheme == FP16:
        return "float"
    if scheme not in schemes.SCHEMES:
        choices = [*schemes.SCHEMES, FP16]
        raise RecipeError(
            f"{did_you_mean(scheme, choices)}unknown quantization scheme {scheme!r}",
            where="quantization",
            choices=choices,
            remedy="Set quantization to one of the choices.",
        )
    found = schemes.find(scheme)
    return f"w{found.weight_bits}a{found.activation_bits}"


def check_scheme(scheme: str, target: Chip) -> None:
    """Raises RecipeError for a scheme that the target cannot run."""
    from anfbuild.quantization import schemes

    precision(scheme)
    if scheme != FP16:
        schemes.check(scheme, str(target.values["arch"]))
    elif not find(target.values["soc_model"]).fp16:
        raise RecipeError(
            f"the HTP of {target.name} does not compute in float16",
            where="quantization",
            remedy="Choose a quantized scheme, or another target.",
        )
