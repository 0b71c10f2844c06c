"""The remote that the environment or the command line names, opened once a process."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.console import visible, write
from anfbuild.engine.remote.settings import Settings, read

if TYPE_CHECKING:
    from anfbuild.engine.remote.shared import Shared


def settings(arguments: Arguments, project: Path) -> Settings | None:
    """What $ANFBUILD_REMOTE and its kin, or `--remote` and `--push`, ask for; None: no remote. Raises RecipeError."""
    return read(os.environ, project, url=arguments.options.get("--remote"), push="--push" in arguments.options)


@functools.cache
def shared(told: Settings) -> Shared:
    """The remote of `told`. All builds of this process share it: a sweep's jobs do not find out anew that it is dead.

    Credentials come from the environment of this process, which may be a sweep's worker. Raises RecipeError.
    """
    from anfbuild.engine.remote.connect import connect
    from anfbuild.engine.remote.shared import Shared

    return Shared(connect(told, os.environ), warn, write=told.write, wait_s=told.wait_s)


def warn(text: str) -> None:
    """Tell the user what does not stop a build."""
    write(f"anfbuild: {visible(text)}\n", sys.stderr)
