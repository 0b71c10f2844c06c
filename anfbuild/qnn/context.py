"""Reads the context model (the ONNX wrapper around the binaries): what it holds and for which chip it was built."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import onnx

from anfbuild.errors import StepError
from anfbuild.graph import load

MODEL = "model.onnx"
_METADATA = "ep_compatibility_info.QNNExecutionProvider"
# v2 : backend : QNN version : context blob version : arch or 0 : soc_model : VTCM in MB or 0 : number of cores or 0
_FORMAT, _FIELDS = "v2", 8


@dataclass(frozen=True)
class Context:
    """`graphs`: names of the EPContext nodes. `binaries`: file names beside the wrapper, all present.

    `host_nodes`: (name, op type) of every other node, which the CPU runs. `host_outputs`: the graph outputs that one of
    these makes, as a rule their DequantizeLinear.
    `qnn_version` "2.51.0" and `qnn_build` "v2.51.0.260929181845" are those of the compiler that built it.
    """

    soc_model: int
    qnn_version: str
    qnn_build: str
    graphs: tuple[str, ...]
    binaries: tuple[str, ...]
    host_nodes: tuple[tuple[str, str], ...]
    host_outputs: tuple[str, ...]


def read(folder: Path) -> Context:
    """Reads `folder`/model.onnx. Raises StepError when it is no context model or a binary is missing."""
    model = load(folder / MODEL)
    nodes = [node for node in model.graph.node if node.op_type == "EPContext"]
    if not nodes:
        raise StepError("the model holds no EPContext node: nothing of it is compiled", where=MODEL)
    attributes = [{a.name: onnx.helper.get_attribute_value(a) for a in node.attribute} for node in nodes]
    caches = {a["ep_cache_context"] for a in attributes if a.get("main_context")}
    host = [node for node in model.graph.node if node.op_type != "EPContext"]
    on_host = {name for node in host for name in node.output}
    soc_model, version = _target({entry.key: entry.value for entry in model.metadata_props})
    return Context(
        soc_model=soc_model,
        qnn_version=version,
        qnn_build=str(attributes[0].get("ep_sdk_version", b""), "utf-8", "replace"),
        graphs=tuple(node.name for node in nodes),
        binaries=tuple(sorted(_binary(folder, str(cache, "utf-8", "replace")) for cache in caches)),
        host_nodes=tuple((node.name, node.op_type) for node in host),
        host_outputs=tuple(value.name for value in model.graph.output if value.name in on_host),
    )


def _target(metadata: dict[str, str]) -> tuple[int, str]:
    fields = metadata.get(_METADATA, "").split(":")
    if len(fields) != _FIELDS or fields[0] != _FORMAT or not fields[5].isdecimal():
        raise StepError(
            f"the context model does not say for which chip it was built (metadata {_METADATA})", where=MODEL
        )
    return int(fields[5]), fields[2]


def _binary(folder: Path, name: str) -> str:
    inside = PurePosixPath(name)
    if inside.name != name:
        raise StepError(f"the context binary {name!r} is not a file beside the context model", where=MODEL)
    if not (folder / name).is_file():
        raise StepError(f"the context binary {name!r} is missing", where=MODEL)
    return name
