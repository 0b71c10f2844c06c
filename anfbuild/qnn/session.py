"""The tasks of the worker process: everything here runs vendor code, so only the worker imports it.

All paths are relative to the working directory, the worker's private folder. A request holds `provider_options`
(`Options.provider_options()`) and what the task's docstring names.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

import numpy as np
import onnxruntime as ort
import onnxruntime_qnn
from onnxruntime_qnn.build_and_package_info import qnn_version

from anfbuild.qnn.arrays import read_arrays, write_arrays
from anfbuild.qnn.options import PROVIDER
from anfbuild.qnn.process import LOG, SOURCE, TRACES

CONTEXT = "model.onnx"
ERROR, WARNING = 3, 2  # onnxruntime's severities

Assignment = list[dict[str, object]]


def compile_model(request: Mapping[str, object]) -> dict[str, object]:
    """Compiles SOURCE to CONTEXT and its binaries, with all that the compiler tells about it beside them.

    Leaves LOG ([[severity, message], …], what `logs` reads), TRACES/*.json and *schematic.bin. Responds with
    `assignment` ([{provider, nodes: [[name, op_type], …]}, …]) and `qnn_version`.
    """
    records: list[tuple[int, str]] = []
    # Before the library is registered: it takes the logger that stands then.
    ort.set_default_logger_callback(lambda severity, _cat, _id, _at, message: _keep(records, severity, message), 0)
    Path(TRACES).mkdir()
    try:
        session = _session(
            # As bytes: the path of a model would be hashed into the graph's name, and so into the binary.
            Path(SOURCE).read_bytes(),
            request,
            provider={
                "enable_framework_op_trace": "1",
                "framework_op_trace_dir": TRACES,
                "dump_json_qnn_graph": "1",
                "json_qnn_graph_dir": TRACES,
                "profiling_level": "optrace",  # makes the compiler leave its schematic
                "profiling_file_path": "profile.csv",
            },
            config={
                "session.disable_cpu_ep_fallback": "0",  # a node that falls to the CPU is reported, not an error here
                "ep.context_enable": "1",
                "ep.context_embed_mode": "0",
                "ep.context_file_path": CONTEXT,
            },
            severity=0,
        )
        return {"assignment": _assignment(session), "qnn_version": qnn_version}
    finally:
        Path(LOG).write_text(json.dumps(records), encoding="utf-8")


def emulate(request: Mapping[str, object]) -> dict[str, object]:
    """Runs the context model at `context` on each `feeds/NNNN.npz`; leaves `outputs/NNNN.npz`.

    Responds with `load_ms` (session creation), `assignment` and `device` (the kind of hardware the provider found).
    """
    started = time.perf_counter()
    session = _session(
        cast(str, request["context"]),
        request,
        provider={},
        # Graph I/O keeps its Q/DQ on the CPU by design, so fallback is not forbidden as such; the assignment says
        # whether the context itself is on the HTP.
        config={"session.disable_cpu_ep_fallback": "0"},
        severity=ERROR,
    )
    load_ms = (time.perf_counter() - started) * 1e3
    session.disable_fallback()  # a failing run would otherwise be repeated on the CPU without a word
    outputs = Path("outputs")
    outputs.mkdir()
    names = [output.name for output in session.get_outputs()]
    for path in sorted(Path("feeds").glob("*.npz")):
        values = cast(list[np.ndarray], session.run(names, read_arrays(path)))
        write_arrays(outputs / path.name, dict(zip(names, values, strict=True)))
    return {"load_ms": load_ms, "assignment": _assignment(session), "device": _devices()[0].device.type.name}


def prepare_online(request: Mapping[str, object]) -> dict[str, object]:
    """Creates a session from SOURCE without a context binary. Responds with `prepare_ms` and `assignment`."""
    model = Path(SOURCE).read_bytes()
    started = time.perf_counter()
    session = _session(model, request, provider={}, config={"session.disable_cpu_ep_fallback": "0"}, severity=ERROR)
    return {"prepare_ms": (time.perf_counter() - started) * 1e3, "assignment": _assignment(session)}


TASKS: dict[str, Callable[[Mapping[str, object]], dict[str, object]]] = {
    "compile": compile_model,
    "emulate": emulate,
    "prepare online": prepare_online,
}


def _session(
    model: bytes | str,
    request: Mapping[str, object],
    *,
    provider: Mapping[str, str],
    config: Mapping[str, str],
    severity: int,
) -> ort.InferenceSession:
    ort.disable_telemetry_events()
    options = ort.SessionOptions()
    options.log_severity_level = severity
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    for key, value in config.items():
        options.add_session_config_entry(key, value)
    asked = cast(dict[str, str], request["provider_options"])
    options.add_provider_for_devices(
        _devices(), {"backend_path": onnxruntime_qnn.get_qnn_htp_path(), **asked, **provider}
    )
    return ort.InferenceSession(model, options)


def _devices() -> list[ort.OrtEpDevice]:
    """The devices of the QNN provider, registered on first use."""
    found = [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]
    if found:
        return found
    ort.register_execution_provider_library(PROVIDER, onnxruntime_qnn.get_library_path())
    return [device for device in ort.get_ep_devices() if device.ep_name == PROVIDER]


def _assignment(session: ort.InferenceSession) -> Assignment:
    return [
        {"provider": group.ep_name, "nodes": [[node.name, node.op_type] for node in group.get_nodes()]}
        for group in session.get_provider_graph_assignment_info()
    ]


def _keep(records: list[tuple[int, str]], severity: int, message: str) -> None:
    """Keeps the lines that `logs` reads, out of some ten thousand."""
    told = message.startswith("Validation ") or "init graph option:" in message or "<E>" in message
    if told or severity >= WARNING:
        records.append((severity, message))
