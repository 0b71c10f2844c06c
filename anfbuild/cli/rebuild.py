"""`python -m anfbuild.cli.rebuild`: the process in which `reproduce` builds again.

It reads one line of JSON, {project, overrides, files, outcome}, from its standard input, builds into the folder `files`
and writes the outcome's document to the file `outcome`. It ends when its standard input does: that is, with the process
that started it, however that ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path

from anfbuild.cli import interruption
from anfbuild.cli.build import build, print_event
from anfbuild.cli.console import Console
from anfbuild.cli.seam import describe
from anfbuild.errors import AnfbuildError
from anfbuild.recipe import compose


def main() -> None:
    """Build what the standard input asks for."""
    with interruption.listening():
        _main()


def _main() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    project = Path(request["project"])
    try:
        recipe = compose(request["overrides"], project)
        outcome = interruption.attentive(build)(
            recipe,
            project,
            latest=False,
            folder=Path(request["files"]),
            notify=lambda event: print_event(event, Console()),
        )
        document = outcome.to_json()
    except AnfbuildError as error:
        document = {"exit_code": error.exit_code, "error": describe(error)}
    except KeyboardInterrupt:
        os._exit(interruption.EXIT_CODE)  # who asked for it says so
    Path(request["outcome"]).write_text(json.dumps(document), encoding="utf-8")


def _end_with_parent() -> None:
    """Wait for the end of the standard input, which nothing is written to any more, and be told to end."""
    os.read(sys.stdin.fileno(), 1)  # not by its buffer, which must not be busy when the interpreter ends
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
