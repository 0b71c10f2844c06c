"""The model that a verb looks at before anything is built: a file on the command line, or the source of a recipe."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anfbuild.cli.arguments import Arguments
from anfbuild.errors import AnfbuildError, RecipeError, did_you_mean

if TYPE_CHECKING:
    import onnx

_COMMAND_LINE = "command line"
_TARGET = "sm8650"
_SCHEME = "int8_per_channel"
_SHAPE = re.compile(r"model\.inputs\.(?P<name>.+)\.shape")
_KEYS = ("target", "quantization", "model.inputs.NAME.shape", "model.outputs")


@dataclasses.dataclass(frozen=True)
class Subject:
    """A source model and what it is looked at for."""

    path: Path
    shown: str
    """How documents call the model."""
    target: Mapping[str, Any]
    """As in a recipe."""
    scheme: str
    shapes: Mapping[str, Sequence[int]]
    outputs: Sequence[str] | None

    def read(self) -> onnx.ModelProto:
        """The model; of ONNX without external data. Raises StepError for what is none."""
        from anfbuild.graph.model import parse

        if self.path.suffix == ".onnx":
            return parse(self.path)
        from anfbuild.sources.readers import find_format, read

        return parse(self.path) if find_format(self.path) == "onnx" else read(self.path)


@contextmanager
def of_model(arguments: Arguments, project: Path) -> Iterator[Subject]:
    """The file that the command line names. Raises RecipeError for an override that says nothing of a model."""
    (word,) = arguments.words
    values = dict(_override(text) for text in arguments.overrides)
    shapes = {}
    for key, value in values.items():
        found = _SHAPE.fullmatch(key)
        if found:
            shapes[found["name"]] = _sizes(key, value)
        elif key not in _KEYS:
            raise RecipeError(
                f"{key!r} says nothing of a model alone",
                where=_COMMAND_LINE,
                choices=_KEYS,
                remedy=f"{did_you_mean(key, _KEYS)}A recipe takes all keys: write +recipe=NAME in place of {word}.",
            )
    outputs = values.get("model.outputs")
    if outputs is not None and not (isinstance(outputs, list) and outputs and all(isinstance(o, str) for o in outputs)):
        raise RecipeError("model.outputs is no list of names", where=_COMMAND_LINE, remedy="Write model.outputs=[A,B].")
    path = Path(word)
    yield Subject(
        path,
        path.as_posix(),
        _target(values.get("target", _TARGET), project),
        _scheme(values.get("quantization", _SCHEME), project),
        shapes,
        outputs,
    )


@contextmanager
def of_recipe(arguments: Arguments, project: Path) -> Iterator[Subject]:
    """The source model of a recipe, which is fetched. Raises RecipeError, VersionError, and what the fetch raises."""
    import json
    import tempfile

    from anfbuild.cli.build import make
    from anfbuild.cli.located import located
    from anfbuild.cli.single import single_recipe

    if not any(text.startswith("+recipe=") for text in arguments.overrides):
        raise RecipeError(
            f"{arguments.verb!r} is about a model, and none is named",
            where=_COMMAND_LINE,
            remedy=f"Write anfbuild {arguments.verb} MODEL, or anfbuild {arguments.verb} +recipe=NAME.",
        )
    recipe = single_recipe(arguments, project)
    config = recipe.config
    with tempfile.TemporaryDirectory() as folder:
        try:
            build = make(recipe, project, lambda _: None)
            try:
                if not build.run("fetch"):
                    assert build.error is not None
                    raise build.error
                build.export("fetch", "source.json", Path(folder) / "source.json")
                entry = json.loads((Path(folder) / "source.json").read_text(encoding="utf-8"))["entry"]
                model = Path(folder) / Path(entry).name
                build.export("fetch", entry, model)
            finally:
                build.close()
        except AnfbuildError as error:
            raise located(error, recipe) from error
        shapes = {name: value["shape"] for name, value in config["model"]["inputs"].items()}
        yield Subject(
            *(model, recipe.name, config["target"], config["quantization"]["scheme"]),
            *(shapes, config["model"]["outputs"]),
        )


def _override(text: str) -> tuple[str, Any]:
    import yaml

    key, _, value = text.partition("=")
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise RecipeError(f"{text!r} has a value that cannot be read", where=_COMMAND_LINE) from error


def _sizes(key: str, value: Any) -> list[int]:
    whole = isinstance(value, list) and all(type(size) is int and size > 0 for size in value)
    if not whole:
        raise RecipeError(
            f"{key} is no list of sizes above zero", where=_COMMAND_LINE, remedy=f"Write '{key}=[1,3,640,640]'."
        )
    sizes: list[int] = value
    return sizes


def _target(word: Any, project: Path) -> Mapping[str, Any]:
    """What conf/target says of a chip, the project's first; of another chip of the table, what that says."""
    from anfbuild.soc import find

    found = _group("target", str(word), project)
    if found is not None:
        return found
    soc = find(word, where=_COMMAND_LINE)
    return {"soc": soc.name.lower(), "soc_model": soc.soc_model, "arch": soc.arch, "vtcm_mb": soc.vtcm_mb}


def _scheme(word: Any, project: Path) -> str:
    found = _group("quantization", str(word), project)
    return str(word if found is None else found.get("scheme", word))


def _group(group: str, name: str, project: Path) -> Mapping[str, Any] | None:
    """The mapping in conf/GROUP/NAME.yaml; None where there is no such file."""
    import yaml

    from anfbuild.recipe.files import shipped

    if not re.fullmatch(r"[\w-]+", name):
        return None
    for root in (project, shipped()):
        path = root / "conf" / group / f"{name}.yaml"
        if path.is_file():
            try:
                found = yaml.safe_load(path.read_text(encoding="utf-8"))
            except (yaml.YAMLError, UnicodeDecodeError) as error:
                raise RecipeError("not a YAML file", where=str(path)) from error
            if not isinstance(found, dict):
                raise RecipeError("not a mapping", where=str(path))
            return found
    return None
