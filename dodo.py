"""The task graph of a recipe for doit's own commands.

    doit list +recipe=ocr_detect
    doit info calibrate +recipe=ocr_detect target=sm8550
    doit clean +recipe=ocr_detect

The store says what is up to date; doit keeps no record of its own, so `forget` has nothing to forget. `clean` removes
what was exported under artifacts/builds and never touches the store.
"""

import sys
from pathlib import Path

from anfbuild.cli.build import doit_tasks
from anfbuild.engine.tasks import DOIT_CONFIG

__all__ = ["DOIT_CONFIG", "task_steps"]


def task_steps():
    """One task a step."""
    overrides = [argument for argument in sys.argv[1:] if "=" in argument and not argument.startswith("-")]
    for task in doit_tasks(overrides, Path.cwd()):
        yield {**task, "basename": task.pop("name")}
