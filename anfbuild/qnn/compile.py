"""QDQ model → context binary for one chip, with what the compiler decided on the way.

Each call is one worker process, and the compile its first: the binaries then repeat byte for byte, in any folder.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import onnx

from anfbuild.errors import StepError
from anfbuild.qnn import context, graph_dump, logs, operations, process, schematic, trace, verdicts
from anfbuild.qnn.availability import unavailable
from anfbuild.qnn.compiled import Compiled
from anfbuild.qnn.options import Options
from anfbuild.qnn.schematic import Traffic
from anfbuild.soc import Soc

_TRACE = "qnn_op_trace.json"
_LAYOUT = re.compile(r"Node '(.*?)' .*was inserted using the NHWC format")
_MIB = 2**20


def compile_context(
    model_bytes: bytes, options: Options, folder: Path, *, timeout_s: float = 600.0, memory_gb: float = 8.0
) -> Compiled:
    """Compiles a serialized QDQ model into `folder`: model.onnx (the context model) and its *.bin beside it.

    Every node needs a unique name. `folder` is made when missing, must be empty, and is written when all went well.
    Nodes that the HTP does not take fall to the CPU and are reported, not refused. Raises RecipeError for options that
    cannot be, StepError for everything that the compiler refuses, a build that is not what was asked, and a worker out
    of `timeout_s` (seconds) or `memory_gb` (GB = 10^9 bytes of resident memory).
    """
    soc = options.check()
    reason = unavailable()
    if reason is not None:
        raise StepError(f"this host cannot compile for the HTP: {reason}")
    model = _parse(model_bytes)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise StepError(f"the folder {folder.name!r} for the context binary is not empty", remedy="Name an empty one.")
    with process.private_folder() as work:
        (work / process.SOURCE).write_bytes(model_bytes)
        request = {"provider_options": options.provider_options()}
        response = process.run(work, "compile", request, timeout_s=timeout_s, memory_gb=memory_gb)
        log = logs.read(_text(work / process.LOG))
        _raise_refusal(response, log, soc)
        if not (work / context.MODEL).is_file():
            raise StepError(f"nothing of the model can run on the HTP of {soc.name}{_reasons(log)}")
        compiled = _collect(model, work, response, log)
        _assert_built(compiled, options, soc, str(response.get("qnn_version")))
        for name in compiled.files:
            shutil.copyfile(work / name, folder / name)
    return compiled


def _parse(model_bytes: bytes) -> onnx.ModelProto:
    try:
        model = onnx.load_from_string(model_bytes)
    except Exception as error:  # protobuf raises one of several kinds, by its implementation
        raise StepError("the model to compile is not an ONNX file") from error
    names = [node.name for node in model.graph.node]
    twice = next((name for name, count in Counter(names).items() if count > 1 or not name), None)
    if twice is not None:
        # The compiler tells about nodes by their names alone.
        raise StepError(f"the model to compile has nodes without a name of their own ({twice or 'unnamed'!r})")
    return model


def _raise_refusal(response: dict[str, object], log: logs.BuildLog, soc: Soc) -> None:
    error = response.get("error")
    if not isinstance(error, dict):
        return
    message = " ".join(str(error.get("message")).split()).removeprefix("[ONNXRuntimeError] : ")
    layout = _LAYOUT.search(message)
    if layout is None:
        raise StepError(f"the HTP compiler refused the model for {soc.name} ({soc.arch}): {message}{_reasons(log)}")
    # The layout pass had already rewritten the node for the HTP when its precision was found impossible: this is no
    # fallback to the CPU but the end of the session.
    validation = log.validations.get(layout[1])
    raise StepError(
        f"this precision is not possible on {soc.name} ({soc.arch}): {validation.reason if validation else message}",
        where=f"node {verdicts.strip(layout[1])}",
        remedy="Choose another quantization scheme, or a newer chip.",
    )


def _reasons(log: logs.BuildLog, most: int = 3) -> str:
    """The vendor's last reasons, as an indented block."""
    failed = [f"{row.op_type} {name}: {row.reason}" for name, row in log.validations.items() if not row.passed]
    return "".join(f"\n  {line}" for line in (log.errors or failed)[-most:])


def _collect(model: onnx.ModelProto, work: Path, response: dict[str, object], log: logs.BuildLog) -> Compiled:
    built = context.read(work)
    groups = verdicts.read_assignment(response.get("assignment"))
    found = trace.read(_text(work / process.TRACES / _TRACE))
    schematics = [_text(path) for path in sorted(work.glob("*schematic.bin"))]
    traffic = _traffic(schematics)
    activations, constants = _data_types(work, built.graphs)
    return Compiled(
        soc_model=built.soc_model,
        soc=log.option("soc_type"),
        arch=f"v{log.option('min_arch')}",
        vtcm_mb=_vtcm_mb(log),
        qnn_version=built.qnn_version,
        qnn_build=built.qnn_build,
        partitions=verdicts.partitions(groups),
        files={name: (work / name).stat().st_size for name in (context.MODEL, *built.binaries)},
        traffic=traffic,
        traffic_reason=None if traffic else "the compiler left no schematic on this host",
        activations=dict(sorted(activations.items())),
        constants=dict(sorted(constants.items())),
        verdicts=verdicts.join(model, groups, found, log, built.host_outputs),
        operations=operations.join([operations.read(text) for text in schematics]) if schematics else None,
    )


def _vtcm_mb(log: logs.BuildLog) -> int:
    size = log.option("vtcm_size")
    if not size.isdecimal() or int(size) % _MIB:
        raise StepError(f"the compiler's log says a VTCM of {size!r} bytes")
    return int(size) // _MIB


def _traffic(schematics: Sequence[str]) -> Traffic | None:
    """The sum over the schematics of all partitions."""
    parts = [schematic.read(text) for text in schematics]
    return sum(parts[1:], parts[0]) if parts else None


def _data_types(work: Path, graphs: tuple[str, ...]) -> tuple[Counter[str], Counter[str]]:
    activations: Counter[str] = Counter()
    constants: Counter[str] = Counter()
    for graph in graphs:
        counted = graph_dump.read(_text(work / process.TRACES / f"{graph}.json"))
        activations += counted[0]
        constants += counted[1]
    return activations, constants


def _assert_built(compiled: Compiled, options: Options, soc: Soc, qnn_version: str) -> None:
    """The compiler takes another chip than asked without an error, so what it built is compared with what was asked."""
    asked = (soc.soc_model, soc.name, soc.arch, options.vtcm_mb or soc.vtcm_mb, qnn_version)
    built = (compiled.soc_model, compiled.soc, compiled.arch, compiled.vtcm_mb, compiled.qnn_version)
    for what, wanted, got in zip(("soc_model", "SoC", "arch", "VTCM (MB)", "QNN version"), asked, built, strict=True):
        if wanted != got:
            raise StepError(f"the compiler built for another target than asked: {what} is {got}, not {wanted}")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise StepError(f"the compiler left no {path.name}") from error
