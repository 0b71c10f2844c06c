"""PyTorch's models through PyTorch's own ONNX exporters. Only the worker process imports this.

A file is data: what in it could run code is refused before or while it is loaded.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

os.environ["TORCH_FORCE_WEIGHTS_ONLY_LOAD"] = "1"  # before PyTorch is imported: it would fall back to any pickle

import onnxscript as _onnxscript  # noqa: F401  # the exporter needs it, and says so late
import torch

from anfbuild import plugins
from anfbuild.errors import AnfbuildError, StepError
from anfbuild.graph.passes.upgrade_opset import NEWEST, OLDEST
from anfbuild.sources.readers.names import rename_outputs

Inputs = Mapping[str, tuple[Sequence[int], str]]
"""Name -> (shape, dtype)."""

_AGAIN = "Save it again with torch.export.save, by the PyTorch that is here; or export it to ONNX and name that file."
_SHAPES = "Give each of them its shape and dtype in model.inputs, and no others."
_EXPRESSION = re.compile(r"[\w\s+*/%(),<>=!&|~.-]*")
_SYMBOL = re.compile(r"Symbol\('(\w+)'(?:, \w+=(?:True|False))*\)")
"""How some releases write the name of an open dimension."""
_FUNCTIONS = (
    "Add Mul Max Min Mod Abs Pow And Or Not Eq Ne Lt Le Gt Ge floor ceiling Integer Float Rational "
    "Identity Where FloorDiv CleanDiv CeilDiv PythonMod ModularIndexing IntTrueDiv FloatTrueDiv CeilToInt "
    "FloorToInt TruncToInt TruncToFloat RoundToInt RoundDecimal ToFloat FloatPow PowByNatural LShift "
    "RShift"
)
"""What may be called in the expressions of a program's dimensions."""


def read_program(path: Path) -> onnx.ModelProto:
    """The exported program in `path`, its inputs and outputs under the names that PyTorch gives them.

    Raises StepError where PyTorch cannot load it, where it holds what could run code, or where it cannot be exported.
    """
    try:
        _refuse_code(path)
        with _no_pickles():
            program = torch.export.load(str(path))
    except AnfbuildError:
        raise
    except Exception as error:  # PyTorch's errors have no common base
        raise StepError(f"PyTorch cannot load the program: {_line(error)}", remedy=_AGAIN) from error
    return _export(program)


def read_script(path: Path, inputs: Inputs) -> onnx.ModelProto:
    """The TorchScript archive in `path`, fed with `inputs`, which are named as the arguments of its `forward`."""
    try:
        script = torch.jit.load(str(path), map_location="cpu").eval()
    except Exception as error:
        raise StepError(
            f"PyTorch cannot load the TorchScript archive: {_line(error)}",
            remedy="Save it again with torch.jit.save, by a PyTorch that is not newer than the one here.",
        ) from error
    return _export_script(script, inputs)


def read_module(name: str, inputs: Inputs) -> onnx.ModelProto:
    """The module or program that the plug-in `name` gives; a module is fed with `inputs`, named as its arguments."""
    torch.manual_seed(0)  # a module without weights of its own is the same each time
    made = plugins.load(plugins.MODELS, name)()
    if isinstance(made, torch.export.ExportedProgram):
        return _export(made)
    if isinstance(made, torch.jit.ScriptModule):
        return _export_script(made.eval(), inputs)
    if not isinstance(made, torch.nn.Module):
        raise StepError(
            f"the model {name!r} is of type {type(made).__name__}",
            choices=["torch.nn.Module", "torch.export.ExportedProgram"],
            remedy="Correct the callable behind the entry point.",
        )
    arguments = inspect.signature(made.forward).parameters.values()
    required = [argument.name for argument in arguments if argument.default is inspect.Parameter.empty]
    _check_names(inputs, [argument.name for argument in arguments], required)
    try:
        with torch.no_grad():
            program = torch.export.export(made.eval(), (), {name: _example(*one) for name, one in inputs.items()})
    except Exception as error:
        raise StepError(
            f"PyTorch cannot trace the module: {_line(error)}", remedy="See that torch.export.export takes it."
        ) from error
    return _export(program)


def _export(program: torch.export.ExportedProgram) -> onnx.ModelProto:
    try:
        made = torch.onnx.export(program, dynamo=True, opset_version=NEWEST, verbose=False)
        model: onnx.ModelProto = made.model_proto
    except Exception as error:
        raise StepError(f"PyTorch cannot export the program to ONNX: {_line(error)}", remedy=_AGAIN) from error
    return model


def _export_script(script: Any, inputs: Inputs) -> onnx.ModelProto:
    """Through the exporter for TorchScript: the one for programs takes none."""
    arguments = script.forward.schema.arguments[1:]
    tensors = [argument.name for argument in arguments if str(argument.type) in ("Tensor", "Optional[Tensor]")]
    required = [argument.name for argument in arguments if not argument.has_default_value()]
    _check_names(inputs, tensors, required)
    names = [name for name in tensors if name in inputs]
    if names != tensors[: len(names)]:
        raise StepError(f"an input before {names[-1]!r} is not given", choices=tensors, remedy=_SHAPES)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        made = Path(folder) / "model.onnx"
        try:
            torch.onnx.export(
                script,
                tuple(_example(*inputs[name]) for name in names),
                str(made),
                dynamo=False,
                opset_version=OLDEST,
                input_names=names,
                verbose=False,
            )
        except Exception as error:
            raise StepError(
                f"PyTorch cannot export the TorchScript archive to ONNX: {_line(error)}",
                remedy="Export the module itself, with torch.export.save or to ONNX.",
            ) from error
        model = onnx.load(str(made))
    # The exporter calls them by numbers.
    rename_outputs(model, [f"output_{index}" for index in range(len(model.graph.output))])
    return model


def _check_names(inputs: Inputs, known: Sequence[str], required: Sequence[str]) -> None:
    if set(required) <= set(inputs) <= set(known) and inputs:
        return
    raise StepError(
        f"the model's inputs are {', '.join(known)}, the recipe's {', '.join(inputs) or 'none'}",
        choices=known,
        remedy=_SHAPES,
    )


def _example(shape: Sequence[int], dtype: str) -> torch.Tensor:
    """Seeded values of a float, zeros of a number that may be an index."""
    kind = getattr(torch, dtype)
    if not kind.is_floating_point:
        return torch.zeros(tuple(shape), dtype=kind)
    return torch.rand(tuple(shape), generator=torch.Generator().manual_seed(0)).to(kind)


def _refuse_code(path: Path) -> None:
    """StepError for a program whose dimensions are said by more than arithmetic: PyTorch evaluates their text."""
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename.endswith(".json"):
                for said in _expressions(json.loads(archive.read(info))):
                    text = _SYMBOL.sub(r"\1", said)
                    called = set(re.findall(r"(\w+)\s*\(", text))
                    if "__" in text or not _EXPRESSION.fullmatch(text) or not called <= {*_FUNCTIONS.split(" ")}:
                        raise StepError(
                            f"the program says a dimension by {said[:80]!r}, which is no arithmetic", remedy=_AGAIN
                        )


def _expressions(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        found = pending.pop()
        if isinstance(found, dict):
            if isinstance(text := found.get("expr_str"), str):
                yield text
            pending += found.values()
        elif isinstance(found, list):
            pending += found


_watching = False


@contextlib.contextmanager
def _no_pickles() -> Iterator[None]:
    """While the block runs, a pickle that names anything is a StepError: what it names, it can call."""
    global _watching

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if _watching and event == "pickle.find_class":
            raise StepError(
                f"the program holds a pickle, which could run any code: it names {'.'.join(map(str, arguments))}",
                remedy="Save a program that holds tensors alone.",
            )

    sys.addaudithook(hook)
    _watching = True
    try:
        yield
    finally:
        _watching = False


def _line(error: Exception) -> str:
    """The first line of the cause: PyTorch wraps it in advice."""
    cause = error.__cause__ if type(error).__name__ == "TorchExportError" and error.__cause__ else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[0] if lines else type(cause).__name__
