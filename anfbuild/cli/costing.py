"""What a model file would cost on a chip: the steps of `anfbuild predict`, with their results in the store."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.cli.build import code_index, host, store_root
from anfbuild.cli.targets import Chip
from anfbuild.engine.cache import Cache
from anfbuild.engine.run import Build, Event
from anfbuild.engine.store import Store

Shapes = Mapping[str, Sequence[int]]


class Costing:
    """One model file for one chip and scheme."""

    def __init__(
        self, model: Path, shapes: Shapes, target: Chip, scheme: str, project: Path, notify: Callable[[Event], None]
    ) -> None:
        store = Store(store_root(project))
        tree = {
            "model": {"path": str(model), "inputs": {name: {"shape": list(shape)} for name, shape in shapes.items()}},
            "quantization": {"scheme": scheme},
            "target": target.values,
        }
        from anfbuild.steps import PREDICTION

        self._build = Build(
            f"predict.{model.stem}",
            PREDICTION,
            tree,
            Cache(store),
            project=project,
            code=code_index(store.memo_file),
            notify=notify,
            host=host,
        )

    def compiled(self) -> dict[str, Any]:
        """What the compiler said. Raises StepError, RecipeError where it did not take the model, or took too long."""
        return dict(json.loads(self._read("lower", "lower.json")))

    def model(self) -> bytes:
        """The clean model with made-up encodings, serialized."""
        return self._read("rough", "model.onnx")

    def close(self) -> None:
        self._build.close()

    def _read(self, step: str, file: str) -> bytes:
        self._build.result(step)
        with tempfile.TemporaryDirectory() as folder:
            self._build.export(step, file, Path(folder) / file)
            return (Path(folder) / file).read_bytes()
