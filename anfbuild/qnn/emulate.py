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
from anfbuild.qnn.options import PROVIDER, Options


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
    load_timeout_s: float = 120.0,
    frame_timeout_s: float = 300.0,
    memory_gb: float = 8.0,
) -> Emulated:
    """Runs `context_dir`/model.onnx on each of `feeds` (input name → array), one session for all.

    Raises RecipeError for options that cannot be; StepError when the binary was built for another chip, is damaged,
    does not run on the HTP, or takes more than `load_timeout_s` + `frame_timeout_s` a sample.
    """
    soc = options.check()
    _require_host()
    built = context.read(context_dir)
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
        _assert_on_htp(response, built)
        outputs = [read_arrays(path) for path in sorted((work / "outputs").glob("*.npz"))]
    on_device = response.get("device") == "NPU"
    return Emulated(outputs, _milliseconds(response, "load_ms"), "measured_device" if on_device else "emulated")


def online_prepare_ms(
    model_bytes: bytes, options: Options, *, timeout_s: float = 600.0, memory_gb: float = 8.0
) -> float:
    """Milliseconds to create a session from a serialized QDQ model without a context binary, on this host.

    What an offline prepare saves is this against `Emulated.load_ms`. Raises as `emulate` does.
    """
    options.check()
    _require_host()
    with process.private_folder() as work:
        (work / process.SOURCE).write_bytes(model_bytes)
        request = {"provider_options": options.provider_options()}
        response = process.run(work, "prepare online", request, timeout_s=timeout_s, memory_gb=memory_gb)
        _raise_refusal(response, "prepare the model")
    if not verdicts.partitions(verdicts.read_assignment(response.get("assignment"))):
        raise StepError("nothing of the model runs on the HTP, so there is no prepare to time")
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


def _assert_on_htp(response: dict[str, object], built: context.Context) -> None:
    groups = verdicts.read_assignment(response.get("assignment"))
    held = {name for group in groups if group.provider == PROVIDER for name, _ in group.nodes}
    lost = sorted(set(built.graphs) - held)
    if lost:
        raise StepError(f"the HTP does not hold {len(lost)} of {len(built.graphs)} compiled graphs", where=lost[0])


def _milliseconds(response: dict[str, object], key: str) -> float:
    value = response.get(key)
    if not isinstance(value, float):
        raise StepError(f"the QNN worker's response has no time {key!r}")
    return value
