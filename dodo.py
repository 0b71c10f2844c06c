"""The task graph of a recipe for doit's own commands, called in the folder of the project.

    doit list +recipe=ocr_detect
    doit info calibrate +recipe=ocr_detect target=sm8550
    doit clean +recipe=ocr_detect

The store says what is up to date; doit keeps no record of its own, so `forget` has nothing to forget. `clean` removes
what was exported under artifacts/builds and never touches the store.
"""

import sys
from pathlib import Path

import doit

from anfbuild.cli.doit import tasks
from anfbuild.engine.tasks import DOIT_CONFIG as SETTINGS

# doit goes to the folder of this file, unless it is told another one; the project is where it was called.
_called_here = Path.cwd() != Path(__file__).resolve().parent
_TASKS = tasks(sys.argv[1:], Path.cwd() if _called_here else Path(doit.get_initial_workdir()))
DOIT_CONFIG = {**SETTINGS, "default_tasks": [_TASKS[-1]["basename"]]}


def task_steps():
    """One task a step."""
    yield from _TASKS
