"""CPU execution with reference settings. This is the only place that makes CPU sessions."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx.external_data_helper import uses_external_data

from anfbuild.cores import available_cores, told_cores
from anfbuild.errors import StepError, did_you_mean
from anfbuild.graph.model import parse, serialize
from anfbuild.graph.unsigned_weights import has_integer_products, make_unsigned

if TYPE_CHECKING:
    import onnxruntime as ort

Shape = tuple[int | None, ...]
"""A dimension that the model leaves open is None."""

_DTYPES: dict[str, np.dtype[np.generic]] = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in {
        "float16": np.float16,
        "float": np.float32,
        "double": np.float64,
        "bool": np.bool_,
        **{kind: kind for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    }.items()
}


_FATAL = 4
"""onnxruntime's log severity: an error is an exception with the same text already."""


class Session:
    """A model ready to run on the CPU, the same way on every host.

    Graph optimisation is off, because the result of a quantized model changes with its level. So the products of a QDQ
    model are those of floats; those of integers are kept from saturating (unsigned_weights.py).
    A failing run never builds another session silently.
    """

    def __init__(
        self, model: onnx.ModelProto | bytes | Path, outputs: Sequence[str] | None = None, threads: int | None = None
    ) -> None:
        """`outputs` are names of any tensors to return beside the model's own outputs; `threads` None: all cores that
        this process may use.

        Raises StepError for a bad model, an unknown name in `outputs`, an operator that the CPU does not know, or an
        input or output that is not a tensor of numbers (strings, sequences).
        """
        data, folder = _model_bytes(model, outputs or ())
        self._session = _make_session(data, threads, folder)
        self.inputs: dict[str, tuple[np.dtype[np.generic], Shape]] = {
            node.name: (_dtype(node.name, node.type), tuple(d if isinstance(d, int) else None for d in node.shape))
            for node in self._session.get_inputs()
        }
        """Input name -> (dtype, shape)."""
        for node in self._session.get_outputs():
            _dtype(node.name, node.type)
        self.outputs: list[str] = [node.name for node in self._session.get_outputs()]
        """The model's own outputs in order, then the extra ones."""

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Output name -> array, for all of `self.outputs`. NaN and Inf are returned as they come.

        Raises StepError when a feed is missing, unknown, or has another dtype or shape than the model's input, and
        when the run fails.
        """
        self._check(feeds)
        try:
            values = self._session.run(self.outputs, dict(feeds))
        except Exception as error:  # the runtime's errors share no other base
            raise StepError(
                f"the model fails on the CPU: {_message(error)}",
                remedy="Mend the node that it names, or cut it off with model.outputs.",
            ) from error
        return {name: np.asarray(value) for name, value in zip(self.outputs, values, strict=True)}

    def _check(self, feeds: Mapping[str, np.ndarray]) -> None:
        for name in feeds:
            if name not in self.inputs:
                raise StepError(f"the model has no input {name!r}", choices=self.inputs)
        for name, (dtype, shape) in self.inputs.items():
            if name not in feeds:
                raise StepError(f"input {name!r} is not fed: expected {dtype} {_text(shape)}", choices=self.inputs)
            found = feeds[name]
            fits = len(found.shape) == len(shape) and all(
                want in (None, size) for want, size in zip(shape, found.shape, strict=True)
            )
            if found.dtype != dtype or not fits:
                raise StepError(
                    f"input {name!r}: expected {dtype} {_text(shape)}, found {found.dtype} {_text(found.shape)}",
                    remedy="Make the sample fit the model, or set the input's shape in the recipe.",
                )


def run_each(
    model: onnx.ModelProto | bytes | Path,
    feeds: Iterable[Mapping[str, np.ndarray]],
    outputs: Sequence[str] | None = None,
) -> Iterator[dict[str, np.ndarray]]:
    """What `Session(model, outputs).run` gives for each of `feeds`, in their order and bit for bit.

    Each sample runs on one core, and as many at once as there are cores: most operators of one sample are too small to
    be shared well. `feeds` is read as samples start, so that no more than one a core and one to come are in memory.
    Raises StepError as Session does.
    """
    cores = available_cores()
    session = Session(model, outputs, threads=1)
    pool = ThreadPoolExecutor(cores)
    running: deque[Future[dict[str, np.ndarray]]] = deque()
    try:
        for feed in feeds:
            running.append(pool.submit(session.run, feed))
            if len(running) > cores:
                yield running.popleft().result()
        while running:
            yield running.popleft().result()
    finally:  # an error or an interruption waits for the samples that run, and starts no other
        pool.shutdown(cancel_futures=True)


def _model_bytes(model: onnx.ModelProto | bytes | Path, outputs: Sequence[str]) -> tuple[bytes, Path | None]:
    """The bytes of the model with its extra outputs, and the folder that holds its external data."""
    folder = None
    if isinstance(model, Path):
        path = model
        model = parse(path)
        folder = path.parent.absolute() if any(map(uses_external_data, model.graph.initializer)) else None
    elif isinstance(model, bytes):
        if not outputs and b"QLinear" not in model and b"Integer" not in model:
            return model, None
        model = onnx.load_model_from_string(model)
    if outputs:
        model = _with_outputs(model, outputs)
    if has_integer_products(model):
        model = make_unsigned(model)
    return serialize(model), folder


def _with_outputs(model: onnx.ModelProto, outputs: Sequence[str]) -> onnx.ModelProto:
    """A copy of `model` that returns the tensors `outputs` too."""
    known = [*(i.name for i in model.graph.input), *(i.name for i in model.graph.initializer)]
    known += [name for node in model.graph.node for name in node.output if name]
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    present = {value.name for value in copy.graph.output}
    for name in dict.fromkeys(outputs):
        if name not in known:
            raise StepError(
                f"the model has no tensor {name!r}", remedy=f"{did_you_mean(name, known)}Name a tensor of the model."
            )
        if name not in present:
            copy.graph.output.append(onnx.ValueInfoProto(name=name))  # the runtime infers its type
    return copy


def _make_session(data: bytes, threads: int | None, folder: Path | None) -> ort.InferenceSession:
    import onnxruntime as ort  # here, for those that only look at a graph: it takes as long as all else

    ort.set_default_logger_severity(_FATAL)
    ort.disable_telemetry_events()
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = _FATAL
    if folder is not None:
        # The runtime wants UTF-8, whatever this process's locale made of the path's bytes.
        text = os.fsencode(folder).decode("utf-8")
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", text)
    options.intra_op_num_threads = threads or told_cores() or 0  # 0: the runtime's own choice, all cores
    try:
        session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the runtime's errors share no other base
        raise StepError(
            f"the model does not load on the CPU: {_message(error)}",
            remedy="Check the model's operators and opset against what onnxruntime's CPU provider knows.",
        ) from error
    session.disable_fallback()
    return session


def _dtype(name: str, kind: str) -> np.dtype[np.generic]:
    if kind not in _DTYPES:
        raise StepError(
            f"tensor {name!r} is of type {kind}, which is not supported",
            choices=_DTYPES,
            remedy="Cut the part of the model that handles it, and do that work before the model.",
        )
    return _DTYPES[kind]


def _text(shape: Shape) -> str:
    return "[" + ",".join("?" if size is None else str(size) for size in shape) + "]"


def _message(error: Exception) -> str:
    return " ".join(str(error).split())
