"""The models that a verb looks at before anything is built: a file on the command line, or the sources of a recipe."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anfbuild.cli import targets
from anfbuild.cli.arguments import Arguments
from anfbuild.errors import AnfbuildError, RecipeError, did_you_mean

if TYPE_CHECKING:
    import onnx

    from anfbuild.engine.run import Build
    from anfbuild.recipe import Recipe

COMMAND_LINE = "command line"
TARGET = "sm8650"
SCHEME = "int8_per_channel"
_OF_INPUT = re.compile(r"model\.inputs\.(?P<name>.+)\.(?P<key>shape|dtype)")
_INPUT_KEYS = ("model.inputs.NAME.shape", "model.inputs.NAME.dtype")
_DTYPES = ("float32", "float16", "uint8", "int8", "int32", "int64")


@dataclasses.dataclass(frozen=True)
class Input:
    """What the command line, or a recipe, says of an input."""

    shape: Sequence[int]
    dtype: str = "float32"


@dataclasses.dataclass(frozen=True)
class Subject:
    """A source model and what it is looked at for."""

    path: Path
    shown: str
    """How documents call the model."""
    target: Mapping[str, Any]
    """As in a recipe."""
    scheme: str
    inputs: Mapping[str, Input]
    outputs: Sequence[str] | None
    component: str | None = None
    """Which of a recipe's several models it is."""
    module: str | None = None
    """The name of the installed model, where it is one."""

    @property
    def shapes(self) -> dict[str, Sequence[int]]:
        """Those that are said."""
        return {name: value.shape for name, value in self.inputs.items()}

    def read(self) -> onnx.ModelProto:
        """The model; of ONNX without external data. Raises StepError for what is none, or needs an extra that is not
        installed."""
        from anfbuild.graph.model import parse

        if self.module is None and self.path.suffix == ".onnx" and not self.path.is_dir():
            return parse(self.path)
        from anfbuild.sources.readers import Example, find_format, read

        if self.module is None and find_format(self.path) == "onnx":
            return parse(self.path)
        examples = {name: Example(tuple(value.shape), value.dtype) for name, value in self.inputs.items()}
        return read(self.path, examples, self.module)


def values_of_model(
    arguments: Arguments, known: Sequence[str], word: str = "MODEL"
) -> tuple[dict[str, Any], dict[str, Input]]:
    """What the command line says without a recipe: the values of the keys in `known`, and what it says of inputs.

    Raises RecipeError for another key, and for a value that cannot be read.
    """
    values: dict[str, Any] = {}
    inputs: dict[str, dict[str, Any]] = {}
    for key, value in map(_override, arguments.overrides):
        if found := _OF_INPUT.fullmatch(key):
            check = _sizes if found["key"] == "shape" else _dtype
            inputs.setdefault(found["name"], {})[found["key"]] = check(key, value)
        elif key in known:
            values[key] = value
        else:
            choices = [*known, *_INPUT_KEYS]
            raise RecipeError(
                f"{key!r} says nothing of a model alone",
                where=COMMAND_LINE,
                choices=choices,
                remedy=f"{did_you_mean(key, choices)}A recipe takes all keys: write anfbuild +recipe=NAME in place of "
                f"{word}.",
            )
    for name, said in inputs.items():
        if "shape" not in said:
            raise RecipeError(
                f"the input {name!r} has a dtype and no shape",
                where=COMMAND_LINE,
                remedy=f"Write 'model.inputs.{name}.shape=[1,3,640,640]' too.",
            )
    return values, {name: Input(**said) for name, said in inputs.items()}


@contextmanager
def of_model(arguments: Arguments, project: Path) -> Iterator[list[Subject]]:
    """The file or folder that the command line names. Raises RecipeError for an override that says nothing of a
    model."""
    (word,) = arguments.words
    values, inputs = values_of_model(arguments, ("target", "quantization", "model.outputs"), word)
    outputs = values.get("model.outputs")
    if outputs is not None and not (isinstance(outputs, list) and outputs and all(isinstance(o, str) for o in outputs)):
        raise RecipeError("model.outputs is no list of names", where=COMMAND_LINE, remedy="Write model.outputs=[A,B].")
    path = Path(word)
    yield [
        Subject(
            path,
            path.as_posix(),
            targets.chip(str(values.get("target", TARGET)), project).values,
            targets.scheme(str(values.get("quantization", SCHEME)), project),
            inputs,
            outputs,
        )
    ]


@contextmanager
def of_recipe(arguments: Arguments, project: Path) -> Iterator[list[Subject]]:
    """The source model of a recipe, or of each of its components, fetched. Raises RecipeError, VersionError, and what
    the fetch raises."""
    import tempfile

    from anfbuild.cli.build import make
    from anfbuild.cli.located import located
    from anfbuild.cli.single import single_recipe
    from anfbuild.engine.instances import part_of

    if not any(text.startswith("+recipe=") for text in arguments.overrides):
        raise RecipeError(
            f"{arguments.verb!r} is about a model, and none is named",
            where=COMMAND_LINE,
            remedy=f"Write anfbuild {arguments.verb} MODEL, or anfbuild {arguments.verb} +recipe=NAME.",
        )
    recipe = single_recipe(arguments, project)
    with tempfile.TemporaryDirectory() as folder:
        at = None
        try:
            build = make(recipe, project, lambda _: None)
            try:
                if not build.run("fetch"):
                    at = next((part_of(event.step) for event in build.events if event.kind == "failed"), None)
                    assert build.error is not None
                    raise build.error
                found = [_fetched(build, member, recipe, Path(folder)) for member in build.members("fetch")]
            finally:
                build.close()
        except AnfbuildError as error:
            raise located(error, recipe, at) from error
        yield found


def _fetched(build: Build, member: str, recipe: Recipe, folder: Path) -> Subject:
    """What the step `member`, a `fetch`, has brought, in a folder of its own."""
    import json

    from anfbuild.engine.instances import part_of

    component = part_of(member)
    config = recipe.components[component] if component else recipe.config
    own = folder / (component or "model")

    def bring(file: str) -> Path:
        (own / file).parent.mkdir(parents=True, exist_ok=True)
        build.export(member, file, own / file)
        return own / file

    entry = json.loads(bring("source.json").read_text(encoding="utf-8"))["entry"]
    for file in build.result(member).files:
        if file == entry or file.startswith(f"{entry}/"):  # what lies beside an ONNX model are weights
            bring(file)
    inputs = {name: Input(value["shape"], value["dtype"]) for name, value in config["model"]["inputs"].items()}
    return Subject(
        own / entry,
        recipe.name,
        config["target"],
        config["quantization"]["scheme"],
        inputs,
        config["model"]["outputs"],
        component,
        config["source"]["name"] if config["source"]["kind"] == "module" else None,
    )


def _override(text: str) -> tuple[str, Any]:
    import yaml

    key, _, value = text.partition("=")
    try:
        return key, yaml.safe_load(value)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise RecipeError(
            f"{text!r} has a value that cannot be read", where=COMMAND_LINE, remedy="Write KEY=VALUE, KEY=[A,B]."
        ) from error


def _sizes(key: str, value: Any) -> list[int]:
    whole = isinstance(value, list) and all(type(size) is int and size > 0 for size in value)
    if not whole:
        raise RecipeError(
            f"{key} is no list of sizes above zero", where=COMMAND_LINE, remedy=f"Write '{key}=[1,3,640,640]'."
        )
    sizes: list[int] = value
    return sizes


def _dtype(key: str, value: Any) -> str:
    if value not in _DTYPES:
        raise RecipeError(
            f"{key} is {value!r}",
            where=COMMAND_LINE,
            choices=_DTYPES,
            remedy=f"{did_you_mean(str(value), _DTYPES)}Write one of these.",
        )
    return str(value)
