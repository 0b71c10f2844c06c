"""Chips and schemes by name, for verbs that work without a recipe: the files of conf/target and conf/quantization, the
project's before anfbuild's own, and beyond them the table of chips.

Light: no Hydra, unless a file has a defaults list.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.quantization.schemes import AS_IS, FP16, SCHEMES
from anfbuild.quantization.schemes import check as check_quantized
from anfbuild.recipe.files import shipped
from anfbuild.soc import SOCS, Soc, find

_NEEDED = ("soc", "soc_model", "arch", "vtcm_mb")


@dataclasses.dataclass(frozen=True)
class Chip:
    """A target, its chip checked. Its rates, if it has any, are the cost model's to check."""

    name: str
    values: Mapping[str, Any]
    """As in a recipe, but for `rates`, which may be missing."""
    file: Path | None
    """Where that is said; None for a chip of the table alone."""

    @property
    def rates(self) -> Mapping[str, Any]:
        """What the cost model reads; empty where there is nothing."""
        found = self.values.get("rates")
        return found if isinstance(found, Mapping) else {}


def names(group: str, project: Path) -> list[str]:
    """The files of conf/GROUP, the project's and anfbuild's own."""
    found = {path.stem for root in (project, shipped()) for path in (root / "conf" / group).glob("*.yaml")}
    return sorted(found)


def exists(name: str, project: Path) -> bool:
    """Whether conf/target has a file of that name."""
    return _file("target", name, project) is not None


def chip(word: str, project: Path) -> Chip:
    """The target of that name: a file of conf/target, or another chip of the table, which has no rates.

    Raises RecipeError: unknown, no mapping in the file, values that are missing or contradict.
    """
    path = _file("target", word, project)
    if path is None and (soc := _in_table(word)) is not None:
        path = _file("target", soc.name.lower(), project)
        if path is None:
            values = {"soc": soc.name.lower(), "name": soc.name, "soc_model": soc.soc_model, "arch": soc.arch}
            return Chip(soc.name.lower(), {**values, "vtcm_mb": soc.vtcm_mb}, None)
    if path is None:
        choices = sorted({*names("target", project), *(soc.name.lower() for soc in SOCS)})
        raise RecipeError(
            f"there is no target {word!r}",
            where="target",
            choices=choices,
            remedy=f"{did_you_mean(word.lower(), choices)}Choose one of these, or write conf/target/NAME.yaml.",
        )
    values = _read("target", path, project)
    for key in _NEEDED:
        if values.get(key) is None:
            raise RecipeError(f"the target {path.stem!r} has no {key!r}", where=str(path), remedy=f"Write {key} in it.")
    try:
        check_target(values)
    except RecipeError as error:
        error.where = f"{path}, {error.where}"
        raise
    return Chip(path.stem, values, path)


def _in_table(word: str) -> Soc | None:
    try:
        return find(word)
    except RecipeError:
        return None


def check_target(target: Mapping[str, Any], performance_mode: str = "default") -> Soc:
    """The chip that a recipe's target describes. Raises RecipeError where its values are unknown or contradict."""
    from anfbuild.qnn.options import Options

    named = find(target["soc"], where="target.soc")
    options = Options(target["soc_model"], target["arch"], target["vtcm_mb"], performance_mode=performance_mode)
    built = options.check()
    if named != built:
        raise RecipeError(
            f"target.soc is {target['soc']!r}, but target.soc_model {target['soc_model']} is {built.name}",
            where="target.soc_model",
            choices=[named.soc_model],
            remedy="Correct one of the two; target.name is free for a name of your own.",
        )
    return built


def scheme(word: str, project: Path) -> str:
    """The quantization scheme that `word` stands for: what a file of conf/quantization says, or a scheme's own name.

    Raises RecipeError for one that there is not.
    """
    path = _file("quantization", word, project)
    found = word if path is None else _read("quantization", path, project).get("scheme", word)
    known = (*SCHEMES, AS_IS, FP16)
    if found not in known:
        choices = sorted({*names("quantization", project), *known})
        raise RecipeError(
            f"unknown quantization scheme {found!r}",
            where="quantization" if path is None else str(path),
            choices=choices,
            remedy=f"{did_you_mean(str(found), choices)}Set quantization to one of the choices.",
        )
    return str(found)


def check_scheme(scheme: str, target: Chip) -> None:
    """Raises RecipeError for a scheme that the target cannot run."""
    if scheme != FP16:
        check_quantized(scheme, str(target.values["arch"]))
    elif not find(target.values["soc_model"]).fp16:
        raise RecipeError(
            f"the HTP of {target.name} does not compute in float16",
            where="quantization",
            remedy="Choose a quantized scheme, or another target.",
        )


def _file(group: str, name: str, project: Path) -> Path | None:
    """conf/GROUP/NAME.yaml of the project, or ours."""
    if not re.fullmatch(r"[\w-]+", name):
        return None
    paths = [root / "conf" / group / f"{name}.yaml" for root in (project, shipped())]
    return next((path for path in paths if path.is_file()), None)


def _read(group: str, path: Path, project: Path) -> dict[str, Any]:
    """The mapping in a group's file, with what its defaults list brings."""
    import yaml

    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError, OSError, ValueError, RecursionError) as error:
        raise RecipeError("not a YAML file", where=str(path), remedy="Correct it; anfbuild's own show how.") from error
    if not isinstance(found, dict):
        raise RecipeError("not a mapping", where=str(path), remedy="Write `key: value` lines; anfbuild's own show how.")
    return _composed(group, path.stem, project) if "defaults" in found else found


def _composed(group: str, name: str, project: Path) -> dict[str, Any]:
    from hydra.errors import HydraException
    from hydra.types import RunMode
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    from anfbuild.recipe.catalogue import Catalogue

    try:
        config = Catalogue(project.resolve()).loader.load_configuration(None, [f"+{group}={name}"], RunMode.RUN)
        found = OmegaConf.to_container(config[group], resolve=True)
    except (HydraException, OmegaConfBaseException) as error:
        raise RecipeError(
            f"conf/{group}/{name}.yaml cannot be composed: {str(error).splitlines()[0]}",
            where=group,
            remedy="Correct its defaults list.",
        ) from error
    assert isinstance(found, dict)
    return {str(key): value for key, value in found.items()}
