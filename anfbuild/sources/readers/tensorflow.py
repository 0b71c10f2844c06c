"""TensorFlow's SavedModels and Keras' models through tf2onnx. Only the worker process imports this."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

# Before TensorFlow is imported: no GPU, the same float kernels on any CPU, and Keras' own file not in the home folder.
os.environ |= {
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "KERAS_BACKEND": "tensorflow",
    "KERAS_HOME": str(Path.cwd() / "keras"),
}

import tensorflow as tf
import tf2onnx

from anfbuild.errors import StepError
from anfbuild.graph.passes.upgrade_opset import OLDEST
from anfbuild.sources.archives import unpack
from anfbuild.sources.readers.formats import SAVED_MODEL
from anfbuild.sources.readers.names import rename_outputs

_SIGNATURE = "serving_default"
_AGAIN = "Save it again by the TensorFlow that is here, or export it to ONNX with tf2onnx and name that file."


def read_saved_model(path: Path) -> onnx.ModelProto:
    """The signature `serving_default`, or the only one, of the SavedModel whose folder, `saved_model.pb` or archive is
    `path`."""
    if path.name == SAVED_MODEL:
        path = path.parent
    if path.is_dir():
        return _read_folder(path)
    with tempfile.TemporaryDirectory(dir=".") as name:
        unpack(path, Path(name))
        found = sorted(Path(name).rglob(SAVED_MODEL))
        if len(found) != 1:
            raise StepError(
                f"the archive holds {len(found)} files {SAVED_MODEL}", remedy="Pack one SavedModel's folder."
            )
        return _read_folder(found[0].parent)


def _read_folder(folder: Path) -> onnx.ModelProto:
    try:
        loaded = tf.saved_model.load(str(folder))
        signatures = dict(loaded.signatures)
    except Exception as error:  # TensorFlow's errors have no common base
        raise StepError(f"TensorFlow cannot load the SavedModel: {_line(error)}", remedy=_AGAIN) from error
    signatures.pop("serve", None) if _SIGNATURE in signatures else None
    name = _SIGNATURE if _SIGNATURE in signatures else next(iter(signatures), None)
    if name is None or (name != _SIGNATURE and len(signatures) > 1):
        raise StepError(
            f"the SavedModel has no signature {_SIGNATURE!r}",
            choices=sorted(signatures),
            remedy="Export it with one signature, or with one of that name: model.export(folder).",
        )
    signature = signatures[name]
    specs = [tf.TensorSpec(one.shape, one.dtype, key) for key, one in signature.structured_input_signature[1].items()]
    return _convert(lambda *values: signature(**{s.name: v for s, v in zip(specs, values, strict=True)}), specs)


def read_keras(path: Path) -> onnx.ModelProto:
    """The Keras model in `path`. Layers that hold code of their own (Lambda) are refused by Keras' safe mode."""
    try:
        model = tf.keras.models.load_model(str(path), compile=False, safe_mode=True)
        inputs, names = list(model.inputs), list(model.output_names)
    except Exception as error:
        raise StepError(
            f"Keras cannot load the model: {_line(error)}",
            remedy="Save the whole model, of Keras' own layers and without Lambda, by the Keras that is here; or "
            "export it to a SavedModel: model.export(folder).",
        ) from error
    specs = [tf.TensorSpec(one.shape, one.dtype, one.name) for one in inputs]
    made = _convert(lambda *values: model(values[0] if len(specs) == 1 else list(values), training=False), specs)
    rename_outputs(made, names)
    return made


def _convert(call: Callable[..., Any], specs: Sequence[Any]) -> onnx.ModelProto:
    try:
        function = tf.function(call, input_signature=specs)
        made, _ = tf2onnx.convert.from_function(function, input_signature=specs, opset=OLDEST)
    except Exception as error:
        raise StepError(f"tf2onnx cannot convert the model: {_line(error)}", remedy=_AGAIN) from error
    model: onnx.ModelProto = made
    _lower_erfc(model.graph)
    _refuse_foreign(model.graph)
    return model


def _lower_erfc(graph: onnx.GraphProto) -> None:
    """erfc(x) = 1 - erf(x): tf2onnx leaves TensorFlow's own operator, which Keras makes a GELU of."""
    for position in reversed(range(len(graph.node))):
        node = graph.node[position]
        if node.op_type != "Erfc":
            continue
        result, error = node.output[0], f"{node.output[0]}/erf"
        one = numpy_helper.from_array(np.ones((), np.float32), f"{result}/one")
        graph.initializer.append(one)
        node.CopyFrom(helper.make_node("Erf", list(node.input), [error], f"{node.name}/erf"))
        graph.node.insert(position + 1, helper.make_node("Sub", [one.name, error], [result], f"{result}/sub"))


def _refuse_foreign(graph: onnx.GraphProto) -> None:
    """StepError for operators that tf2onnx passed on as they are in TensorFlow."""
    foreign = sorted(
        {node.op_type for node in graph.node if not node.domain and not onnx.defs.has(node.op_type)}
        | {node.op_type for node in graph.node if node.domain not in ("", "ai.onnx.ml")}
    )
    if foreign:
        raise StepError(
            f"tf2onnx knows no ONNX operator for TensorFlow's {', '.join(foreign)}",
            remedy="Export the model without it.",
        )


def _line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
