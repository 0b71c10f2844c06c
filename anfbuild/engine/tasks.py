"""The seam to doit: run ready-made tasks, and the configuration with which doit's own commands run the same.

doit's dependency file loses records when processes share it, and all of them when one is killed: its record is in
memory. A build asks doit's runner, not its command line, which looks through all that is installed for plug-ins of
doit's, three times a run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from doit.control import TaskControl
from doit.dependency import Dependency, SqliteDB
from doit.reporter import ZeroReporter
from doit.runner import Runner
from doit.task import Stream, dict_to_task

_IN_MEMORY = ":memory:"
_VERBOSITY = 2
DOIT_CONFIG = {"backend": "sqlite3", "dep_file": _IN_MEMORY, "reporter": "zero", "verbosity": _VERBOSITY}


def run(tasks: Sequence[dict[str, Any]], goal: str) -> int:
    """Run the task `goal` and what it depends on, each after its own. 0 where all went well."""
    control = TaskControl([dict_to_task(task) for task in tasks])
    control.process([goal])
    reporter = ZeroReporter(sys.stdout, {})
    code: int = Runner(Dependency(SqliteDB, _IN_MEMORY), reporter, stream=Stream(_VERBOSITY)).run_all(
        control.task_dispatcher()
    )
    return code
