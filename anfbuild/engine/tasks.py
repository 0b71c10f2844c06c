"""The seam to doit: a loader for ready-made task dictionaries, and a configuration that keeps doit's record in memory.

doit's own dependency file loses records when processes share it, and all of them when one is killed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doit.cmd_base import TaskLoader2
from doit.task import Task, dict_to_task

DOIT_CONFIG = {"backend": "sqlite3", "dep_file": ":memory:", "reporter": "zero", "verbosity": 2}


class Loader(TaskLoader2):
    """Hands the given task dictionaries to doit."""

    def __init__(self, tasks: Sequence[dict[str, Any]]) -> None:
        super().__init__()
        self._tasks = tasks

    def load_doit_config(self) -> dict[str, Any]:
        """doit's name for: the options that this loader sets."""
        return DOIT_CONFIG

    def load_tasks(self, cmd: Any, pos_args: Any) -> list[Task]:  # noqa: ARG002  # doit's signature
        """doit's name for: the tasks."""
        return [dict_to_task(task) for task in self._tasks]
