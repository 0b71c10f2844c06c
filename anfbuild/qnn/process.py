"""The worker process in which vendor code runs, and what it and the build leave for one another in its folder."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from anfbuild import confined

# What the tasks take from and leave in the private folder: the model, the kept log lines, the compiler's JSON files.
SOURCE, LOG, TRACES = "source.onnx", "log.json", "traces"


def private_folder() -> AbstractContextManager[Path]:
    """A folder of the worker's own, gone with all that vendor code dropped into it when the block ends."""
    return confined.private_folder("qnn")


def run(
    folder: Path, task: str, request: Mapping[str, object], *, timeout_s: float, memory_gb: float
) -> dict[str, object]:
    """Runs `task` of `anfbuild.qnn.session` in `folder`; as `confined.run`."""
    return confined.run(
        folder, "anfbuild.qnn.session", task, request, name="QNN", timeout_s=timeout_s, memory_gb=memory_gb
    )
