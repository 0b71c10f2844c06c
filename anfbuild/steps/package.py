"""package: everything that a device needs, in one archive."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json
from anfbuild.steps.options import task_options

_NORMALIZATION = ("channels", "scale", "mean", "std")
_OF_TOKENS = ("int32", "int64")
"""The types of inputs that a text fills: nothing is normalized."""


@dataclasses.dataclass(frozen=True)
class Package:
    """What the manifest says beside the contents."""

    name: str = at("name")
    license: str | None = at("source.license")
    inputs: dict[str, dict[str, Any]] = at("model.inputs.*")
    task: dict[str, Any] = at("task.*")
    backend: str = at("backend.kind")
    soc: str = at("target.soc")
    chip: str = at("target.name")
    soc_model: int = at("target.soc_model")
    arch: str = at("target.arch")
    vtcm_mb: int = at("target.vtcm_mb")
    versions: list[dict[str, Any]] = at("host.versions")


@step(needs=("fetch", "convert", "quantize", "prepare"), config=Package)
def package(job: Job[Package]) -> None:
    """Pack the context binary, the portable QDQ model, the encodings and the manifest."""
    from anfbuild import package as archive

    # A large model has its data beside it.
    files = {f"qdq/{path.name}": path for path in sorted(job.inputs["quantize"].glob("model.onnx*"))}
    files["encodings.json"] = job.inputs["quantize"] / "encodings.json"
    entry = {"qdq": "qdq/model.onnx"}
    context = job.inputs["prepare"] / "context"
    if context.is_dir():
        files |= {f"context/{path.name}": path for path in sorted(context.iterdir())}
        entry["context"] = "context/model.onnx"
    vocabulary = job.inputs["convert"] / "vocabulary" / "vocabulary.json"
    if read_json(vocabulary):
        files["vocabulary.json"] = vocabulary
        entry["vocabulary"] = "vocabulary.json"
    archive.write(job.output / "package.anf", files=files, manifest=_manifest(job, entry))


def _manifest(job: Job[Package], entry: Mapping[str, str]) -> dict[str, Any]:
    config = job.config
    source = read_json(job.inputs["fetch"] / "source.json")
    kind, options = config.task["kind"], task_options(config.task)
    return {
        "name": config.name,
        "backend": config.backend,
        "target": {
            "soc": config.soc,
            "name": config.chip,
            "arch": config.arch,
            "soc_model": config.soc_model,
            "vtcm_mb": config.vtcm_mb,
        },
        "versions": {
            part["part"]: {"required": part["required"], "built_with": part["found"]} for part in config.versions
        },
        "task": {"kind": kind, "options": options},
        "source": {"sha256": source["sha256"], "license": config.license},
        "entry": dict(entry),
        "tensors": _tensors(job.inputs, config.inputs),
    }


def _tensors(inputs: Mapping[str, Path], specs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Inputs and outputs with shape, dtype, encoding and, for inputs, how an image becomes their values."""
    interface = read_json(inputs["convert"] / "convert.json")["interface"]
    encodings = read_json(inputs["quantize"] / "encodings.json")["activations"]
    tensors: dict[str, Any] = {"inputs": {}, "outputs": {}}
    for side, values in interface.items():
        for name, tensor in values.items():
            tensors[side][name] = dict(tensor)
            if name in encodings:
                encoding = encodings[name]
                tensors[side][name]["encoding"] = {
                    "dtype": encoding["dtype"],
                    "scale": encoding["scale"][0],  # activations have one scale for the whole tensor
                    "zero_point": encoding["zero_point"][0],
                }
            if side == "inputs" and name in specs and specs[name]["dtype"] not in _OF_TOKENS:
                tensors[side][name]["layout"] = specs[name]["layout"]
                tensors[side][name]["normalization"] = {key: specs[name][key] for key in _NORMALIZATION}
    return tensors
