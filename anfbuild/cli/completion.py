"""Tab completion, which is Hydra's, over our recipes and groups."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from hydra._internal.hydra import Hydra
from hydra.errors import HydraException

from anfbuild.cli.console import write
from anfbuild.errors import RecipeError
from anfbuild.recipe.catalogue import PRIMARY, Catalogue

_OWN_OPTIONS = {"--json", "--debug"}
"""Options of ours that Hydra's reader of the half-typed line does not know."""


def complete(arguments: Sequence[str], project: Path) -> None:
    """Print what the shell asks for: `install=bash`, `uninstall=bash`, or `query=bash` with the line in COMP_LINE.

    Raises RecipeError: no such request or shell.
    """
    hydra = Hydra("anfbuild", Catalogue(project).loader)
    query = any(argument.startswith("query=") for argument in arguments)
    if "COMP_LINE" in os.environ:
        words = os.environ["COMP_LINE"].split(" ")
        os.environ["COMP_LINE"] = " ".join(word for word in words if word not in _OWN_OPTIONS)
    elif query:
        raise RecipeError("a shell asks this with the line in COMP_LINE", where="--shell-completion")
    try:
        with contextlib.redirect_stdout(io.StringIO()) as answer:
            hydra.shell_completion(PRIMARY, list(arguments))
        write(answer.getvalue(), sys.stdout)
    except (HydraException, RecipeError, ValueError) as error:
        if query:
            return  # a half-typed line is wrong more often than not, and there is nobody to read about it
        raise RecipeError(
            "completion can be installed or uninstalled",
            where="--shell-completion",
            choices=[f"{verb}={shell}" for verb in ("install", "uninstall") for shell in ("bash", "zsh", "fish")],
            remedy='For bash: eval "$(anfbuild -sc install=bash)".',
        ) from error
