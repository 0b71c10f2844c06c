"""The formats by name, and which of them a file has: its content decides, its suffix where the content says nothing."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from anfbuild.errors import StepError
from anfbuild.sources.archives import zip_names

FORMATS = {
    "onnx": "an ONNX model (.onnx)",
    "tflite": "a TensorFlow Lite flatbuffer (.tflite)",
    "torch": "a program that torch.export.save wrote (.pt2)",
    "torchscript": "a TorchScript archive (.pt, .pth)",
    "module": "a PyTorch module that an installed distribution offers (source.kind: module)",
    "saved_model": "a TensorFlow SavedModel (a folder, .tar, .tar.gz or .zip)",
    "keras": "a Keras model (.keras, .h5)",
}
"""Format -> what it is, for messages."""

SAVED_MODEL = "saved_model.pb"
"""The file that makes a folder a SavedModel."""

_SUFFIXES = {
    ".onnx": "onnx",
    ".tflite": "tflite",
    ".lite": "tflite",
    ".pt2": "torch",
    ".keras": "keras",
    ".tar": "saved_model",
    ".tgz": "saved_model",
    ".zip": "saved_model",
    ".gz": "saved_model",  # a build keeps the last part of .tar.gz alone
    ".xz": "saved_model",
    ".bz2": "saved_model",
}
_ELSEWHERE = {
    "": "Name the model in the folder with source.file; a SavedModel's folder holds saved_model.pb.",
    ".safetensors": "These are weights alone: export the model that they belong to.",
    ".weights.h5": "These are weights alone: save the whole Keras model (.keras).",
}
"""Suffix of a format that has no reader ("" for a folder) -> what to do with it."""

_TFLITE_MARK = b"TFL3"
"""The flatbuffers identifier, at byte 4."""
_ZIP_MARK, _HDF5_MARK, _PICKLE_MARK = b"PK\x03\x04", b"\x89HDF\r\n\x1a\n", b"\x80"


def find_format(path: Path) -> str:
    """The name in FORMATS of what lies at `path`. Raises StepError where it is none of them, or not there."""
    if path.is_dir():
        if (path / SAVED_MODEL).is_file():
            return "saved_model"
        raise _unknown(path, "a folder without saved_model.pb is none of the formats that can be read", _ELSEWHERE[""])
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise StepError(
            f"the model file cannot be read: {error.strerror}", where=str(path), remedy="Check the path."
        ) from error
    return _by_content(path, head) or _by_name(path, head)


def _by_content(path: Path, head: bytes) -> str | None:
    if head[4:8] == _TFLITE_MARK:
        return "tflite"
    if path.name == SAVED_MODEL:
        return "saved_model"
    if head == _HDF5_MARK and not path.name.endswith(".weights.h5"):
        return "keras"
    if head[:4] == _ZIP_MARK and (names := zip_names(path)) is not None:
        return _of_zip(path, names)
    return None


def _of_zip(path: Path, names: list[str]) -> str | None:
    """By the files in the archive, most of which lie in a folder of the archive's own name."""
    bases = {PurePosixPath(name).name for name in names}
    inside = {name.partition("/")[2] for name in names} | set(names)
    if {"config.json", "model.weights.h5"} <= inside:
        return "keras"
    if SAVED_MODEL in bases:
        return "saved_model"
    if inside & {"archive_format", "serialized_exported_program.json"}:
        return "torch"
    if "constants.pkl" in inside:
        return "torchscript"
    if "data.pkl" in inside:
        raise _pickle(path)
    return None


def _by_name(path: Path, head: bytes) -> str:
    suffix = path.suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    if suffix in (".pt", ".pth", ".bin", ".pkl", ".pickle", ".ckpt") and head[:1] == _PICKLE_MARK:
        raise _pickle(path)
    # An ONNX file starts with its IR version (field 1, a number) unless a tool wrote the fields in another order.
    if suffix == "" or head[:1] == b"\x08":
        return "onnx"
    if path.name.endswith(".weights.h5"):
        suffix = ".weights.h5"
    remedy = _ELSEWHERE.get(suffix, "Export the trained model to one of them, or name the right file.")
    raise _unknown(path, f"this file, which ends with {suffix}, is none of the formats that can be read", remedy)


def _pickle(path: Path) -> StepError:
    return StepError(
        "a pickle is refused: it may run any code when it is loaded, and says nothing of the model's graph",
        where=str(path),
        choices=FORMATS.values(),
        remedy="Save the model with torch.export.save or torch.jit.save; or offer it as an installed module "
        "(source.kind: module).",
    )


def _unknown(path: Path, what: str, remedy: str) -> StepError:
    return StepError(
        what,
        where=str(path),
        choices=FORMATS.values(),
        remedy=remedy,
    )
