"""A worker process: `python worker.py PID MODULE`, in its private folder, with `request.json` in it.

PID is its parent's, MODULE has the `TASKS` that it can be asked for. It is started as a file, so that it is bound to
its parent before anything of the package is imported.
Writes `response.json` last: its presence says that the task ran to its end. A refusal by the code that is run is a
response too, `{"error": {"kind": …, "message": …, "choices": […], "remedy": …}}`.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import signal
import sys
from pathlib import Path

REQUEST, RESPONSE = "request.json", "response.json"
_PR_SET_PDEATHSIG = 1  # prctl(2)


def main() -> None:
    """Does the task of `request.json` in the current directory."""
    _die_with(parent=int(sys.argv[1]))
    request = json.loads(Path(REQUEST).read_text(encoding="utf-8"))
    tasks = importlib.import_module(sys.argv[2]).TASKS  # others' code: only after the process is bound to its parent
    try:
        response = tasks[request["task"]](request)
    except Exception as error:
        response = {"error": _described(error)}
    partial = Path(f"{RESPONSE}.part")
    partial.write_text(json.dumps(response), encoding="utf-8")
    partial.replace(RESPONSE)
    sys.stdout.flush()
    sys.stderr.flush()
    # The task is done. Unloading others' libraries can crash, and that would say nothing about the task.
    os._exit(0)


def _described(error: Exception) -> dict[str, object]:
    """The error in words; of one that is meant for the user, all of them."""
    return {
        "kind": type(error).__name__,
        "message": getattr(error, "what", str(error)),
        "choices": getattr(error, "choices", []),
        "remedy": getattr(error, "remedy", None),
    }


def _die_with(parent: int) -> None:
    """Asks the kernel to kill this process when the build dies without a chance to clean up (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before it could be asked
            os._exit(1)


if __name__ == "__main__":
    main()
