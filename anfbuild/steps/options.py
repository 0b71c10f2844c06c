"""What steps take of the recipe's task. Apart from what makes the task, whose code is not part of every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def task_options(task: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's task without its kind."""
    return {name: value for name, value in task.items() if name != "kind"}
