"""The formats by name, and which of them a file has: its content decides, its suffix where the content says nothing."""

from __future__ import annotations

from pathlib import Path

import onnx

from anfbuild.errors import StepError

FORMATS = {
    "onnx": "an ONNX model (.onnx)",
    "tflite": "a TensorFlow Lite flatbuffer (.tflite)",
    "torch": "a program that torch.export.save wrote (.pt2)",
}
"""Format -> what it is, for messages."""

_ELSEWHERE = {
    "": "Convert a SavedModel with tf.lite.TFLiteConverter, or name the model in the folder with source.file.",
    ".h5": "Convert a Keras model with tf.lite.TFLiteConverter.",
    ".keras": "Convert a Keras model with tf.lite.TFLiteConverter.",
    ".pt": "Pickles and TorchScript say too little: save it with torch.export.save (.pt2), or export it to ONNX.",
    ".pth": "Pickles say too little: save it with torch.export.save (.pt2), or export it to ONNX.",
    ".safetensors": "These are weights alone: export the model that they belong to.",
}
"""Suffix of a format that has no reader ("" for a folder) -> what to do with it."""

_TFLITE_MARK = b"TFL3"
"""The flatbuffers identifier, at byte 4."""


def read(path: Path) -> onnx.ModelProto:
    """The model at `path`, whatever its format, as ONNX, accepted by onnx.checker.

    Raises StepError naming the file for a format that is not known, and for what its reader refuses.
    """
    found = find_format(path)
    if found == "tflite":
        from anfbuild.sources.readers.tflite import read_tflite

        return read_tflite(path)
    if found == "torch":
        from anfbuild.sources.readers.torch import read_torch

        return read_torch(path)
    from anfbuild.sources.readers.onnx import read_onnx

    return read_onnx(path)


def find_format(path: Path) -> str:
    """The name in FORMATS of what lies at `path`. Raises StepError where it is none of them, or not there."""
    if path.is_dir():
        raise _unknown(path, "a folder is none of the formats that can be read", _ELSEWHERE[""])
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise StepError(
            f"the model file cannot be read: {error.strerror}", where=str(path), remedy="Check the path."
        ) from error
    suffix = path.suffix.lower()
    if head[4:8] == _TFLITE_MARK or suffix in (".tflite", ".lite"):
        return "tflite"
    if suffix == ".pt2":
        return "torch"
    # An ONNX file starts with its IR version (field 1, a number) unless a tool wrote the fields in another order.
    if suffix in (".onnx", "") or head[:1] == b"\x08":
        return "onnx"
    remedy = _ELSEWHERE.get(suffix, "Export the trained model to one of them, or name the right file.")
    raise _unknown(path, f"a file that ends with {suffix} is none of the formats that can be read", remedy)


def _unknown(path: Path, what: str, remedy: str) -> StepError:
    return StepError(
        what,
        where=str(path),
        choices=FORMATS.values(),
        remedy=remedy,
    )
