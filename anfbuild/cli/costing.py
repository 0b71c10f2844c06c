"""What a model would cost on a chip: the steps of `anfbuild predict`, with their results in the store."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from anfbuild.cli.build import code_index, store_root
from anfbuild.cli.host import host
from anfbuild.cli.subject import Input
from anfbuild.cli.targets import Chip
from anfbuild.engine.cache import Cache
from anfbuild.engine.run import Build, Event
from anfbuild.engine.store import Store
from anfbuild.errors import AnfbuildError, Unavailable


@dataclasses.dataclass(frozen=True)
class Cost:
    """What there is to cost a model by."""

    model: bytes
    """The clean model in the scheme, with made-up encodings, serialized."""
    compiled: Mapping[str, Any] | None
    """What the compiler said of it (`lower.json`)."""
    why_not: str | None
    """Why it said nothing."""


def cost(
    model: Path,
    inputs: Mapping[str, Input],
    target: Chip,
    scheme: str,
    project: Path,
    notify: Callable[[Event], None],
    *,
    no_compile: str | None = None,
) -> Cost:
    """Bring what tells the cost of a model file, or folder, up to date in the project's store.

    `no_compile` is why the compiler is not asked. Where this host lacks the time or the memory for a compile, that is
    the reason; all else that goes wrong is raised, as a build's steps do.
    """
    from anfbuild.steps import PREDICTION

    store = Store(store_root(project))
    said = {name: {"shape": list(value.shape), "dtype": value.dtype} for name, value in inputs.items()}
    build = Build(
        f"predict.{model.stem}",
        PREDICTION,
        {
            "model": {"path": str(model), "inputs": said},
            "quantization": {"scheme": scheme},
            "target": target.values,
        },
        Cache(store),
        project=project,
        code=code_index(store.memo_file),
        notify=notify,
        host=host,
    )
    try:
        why_not = no_compile
        if not build.run("rough" if no_compile else "lower"):
            assert isinstance(build.error, AnfbuildError)
            compiles = any(event.kind == "failed" and event.step == "lower" for event in build.events)
            if not (compiles and isinstance(build.error, Unavailable)):
                raise _told(build.error, target, scheme) if compiles else build.error
            why_not = build.error.what
        compiled = None if why_not else json.loads(_read(build, "lower", "lower.json"))
        return Cost(_read(build, "rough", "model.onnx"), compiled, why_not)
    finally:
        build.close()


def _told(error: AnfbuildError, target: Chip, scheme: str) -> AnfbuildError:
    """A compile's error, with what it was for, and a way on."""
    remedy = error.remedy or "Another scheme or target may do; predict --no-compile makes a structural estimate."
    what = f"{target.name}, {scheme}: {error.what}"
    return type(error)(what, where=error.where, choices=error.choices, remedy=remedy)


def _read(build: Build, step: str, file: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        build.export(step, file, Path(folder) / file)
        return (Path(folder) / file).read_bytes()
