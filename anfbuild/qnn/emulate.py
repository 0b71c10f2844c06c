"""Runs a context binary: on the HTP emulator, or on the NPU itself where the host is an arm64 Snapdragon."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from anfbuild.errors import StepError
from anfbuild.qnn import context, process, verdicts
from anfbuild.qnn.arrays import read_arrays, write_arrays
from anfbuild.qnn.availability import unavailable
from anfbuild.qnn.options import CPU_PROVIDER, PROVIDER, Options

_SHOWN = 8
"""Nodes that a message names."""


@dataclass(frozen=True)
class Emulated:
    """`outputs`: one dict (output name → array) a sample. `load_ms`: time to create the session from the binary.

    `source` says what ran it: the emulator's outputs are the HTP's own arithmetic, but its times are not a device's.
    """

    outputs: list[dict[str, np.ndarray]]
    load_ms: float
    source: Literal["emulated", "measured_device"]


def emulate(
    context_dir: Path,
    feeds: Sequence[dict[str, np.ndarray]],
    options: Options,
    *,
    partitions: int | None = None,
    load_timeout_s: float = 120.0,
    frame_timeout_s: float = 300.0,
    memory_gb: float = 8.0,
) -> Emulated:
    """Runs `context_dir`/model.onnx on each of `feeds` (input name → array), one session for all.

    `partitions` is in how many parts the compile put the model on the HTP. Raises RecipeError for options that cannot
    be; StepError when the binary was built for another chip, is damaged, is not loaded as it was compiled (another
    number of parts on the HTP, or a node elsewhere that the compile did not leave there), or takes more than
    `load_timeout_s` + `frame_timeout_s` a sample.
    """
    soc = options.check()
    _require_host()
    built = context.read(context_dir)
    if partitions is not None and len(built.graphs) != partitions:
        raise StepError(
            f"the context model holds {len(built.graphs)} compiled graphs, and the compile made {partitions}",
            where=context.MODEL,
            remedy="Compile the model again: this is not what was prepared.",
        )
    if built.soc_model != soc.soc_model:
        raise StepError(
            f"the context binary is for soc_model {built.soc_model}, not for {soc.name} ({soc.soc_model})",
            remedy="Compile it for this target: the host would load it without a word, a device would not.",
        )
    with process.private_folder() as work:
        (work / "feeds").mkdir()
        for number, feed in enumerate(feeds):
            write_arrays(work / "feeds" / f"{number:06d}.npz", feed)
        # Named from the worker's own folder: the runtime takes no path that the locale cannot tell it.
        shutil.copytree(context_dir, work / "context")
        request = {"provider_options": options.provider_options(), "context": f"context/{context.MODEL}"}
        timeout_s = load_timeout_s + frame_timeout_s * len(feeds)
        response = process.run(work, "emulate", request, timeout_s=timeout_s, memory_gb=memory_gb)
        _raise_refusal(response, "run the context binary")
        assert_placed(verdicts.read_assignment(response.get("assignment")), built)
        outputs = [read_arrays(path) for path in sorted((work / "outputs").glob("*.npz"))]
    on_device = response.get("device") == "NPU"
    return Emulated(outputs, _milliseconds(response, "load_ms"), "measured_device" if on_device else "emulated")


def online_prepare_ms(
    model_bytes: bytes,
    options: Options,
    *,
    partitions: int | None = None,
    timeout_s: float = 600.0,
    memory_gb: float = 8.0,
) -> float:
    """Milliseconds to create a session from a serialized QDQ model without a context binary, on this host.

    What an offline prepare saves is this against `Emulated.load_ms`. `partitions` is in how many parts an offline
    compile puts the model on the HTP. Raises as `emulate` does.
    """
    options.check()
    _require_host()
    with process.private_folder() as work:
        (work / process.SOURCE).write_bytes(model_bytes)
        request = {"provider_options": options.provider_options()}
        response = process.run(work, "prepare online", request, timeout_s=timeout_s, memory_gb=memory_gb)
        _raise_refusal(response, "prepare the model")
    found = verdicts.partitions(verdicts.read_assignment(response.get("assignment")))
    if not found:
        raise StepError("nothing of the model runs on the HTP, so there is no prepare to time")
    if partitions is not None and found != partitions:
        raise _misplaced(f"{found} parts of it are on the HTP, and an offline compile makes {partitions}", [])
    return _milliseconds(response, "prepare_ms")


def _require_host() -> None:
    reason = unavailable()
    if reason is not None:
        raise StepError(f"this host has no HTP emulator: {reason}")


def _raise_refusal(response: dict[str, object], task: str) -> None:
    error = response.get("error")
    if isinstance(error, dict):
        message = " ".join(str(error.get("message")).split()).removeprefix("[ONNXRuntimeError] : ")
        raise StepError(f"the HTP could not {task}: {message}", where=context.MODEL)


def assert_placed(groups: Sequence[verdicts.Group], built: context.Context) -> None:
    """Compare where a session put the nodes of a context model with what was compiled.

    Raises StepError, naming the difference: a compiled graph that the HTP does not hold, a provider beside HTP and CPU,
    a node on the CPU that was not left there. A session may merge nodes of the CPU, so that fewer are right.
    """
    held = {name for group in groups if group.provider == PROVIDER for name, _ in group.nodes}
    lost = sorted(set(built.graphs) - held)
    if lost:
        raise _misplaced(f"the HTP does not hold {len(lost)} of {len(built.graphs)} compiled graphs", lost)
    others = sorted({group.provider for group in groups} - {PROVIDER, CPU_PROVIDER})
    if others:
        raise _misplaced(f"{', '.join(others)} took a part of the model, beside HTP and CPU", others)
    on_cpu = [node for group in groups if group.provider == CPU_PROVIDER for node in group.nodes]
    if len(on_cpu) > len(built.host_nodes):
        new = [f"{name} ({op_type})" for name, op_type in on_cpu if (name, op_type) not in built.host_nodes]
        raise _misplaced(
            f"{len(on_cpu)} nodes are on the CPU, and the compile left {len(built.host_nodes)} there: "
            f"{', '.join(new[:_SHOWN])}",
            new,
        )


def _misplaced(what: str, nodes: Sequence[str]) -> StepError:
    return StepError(
        f"the model was not loaded as it was compiled: {what}",
        where=nodes[0] if nodes else context.MODEL,
        remedy="Use the runtime that compiled it; anfbuild runs nothing on the CPU without a word.",
    )


def _milliseconds(response: dict[str, object], key: str) -> float:
    value = response.get(key)
    if not isinstance(value, float):
        raise StepError(f"the QNN worker's response has no time {key!r}")
    return value
