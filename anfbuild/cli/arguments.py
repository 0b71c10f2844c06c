"""The command line, taken apart by hand: argparse knows no overrides, and its errors have no `did you mean`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from anfbuild.errors import RecipeError, did_you_mean

_FLAGS = {
    "-m": "multirun",
    "--multirun": "multirun",
    "--json": "json",
    "--debug": "debug",
    "-sc": "completion",
    "--shell-completion": "completion",
    "-h": "help",
    "--help": "help",
    "--version": "version",
}
_CONFIG = ("--cfg", "-c")
_OPTIONS = sorted([*_FLAGS, *_CONFIG])


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What was asked for."""

    overrides: tuple[str, ...] = ()
    multirun: bool = False
    config: bool = False
    json: bool = False
    debug: bool = False
    completion: bool = False
    help: bool = False
    version: bool = False


def parse(argv: Sequence[str]) -> Arguments:
    """Raises RecipeError: an unknown option, a word that is neither option nor override."""
    found: dict[str, bool] = {}
    overrides = []
    words = list(argv)
    while words:
        word = words.pop(0)
        option, equals, value = word.partition("=")
        if option in _CONFIG:
            _check_config(value if equals else words.pop(0) if words else "")
            found["config"] = True
        elif word in _FLAGS:
            found[_FLAGS[word]] = True
        elif word.startswith("-"):
            raise RecipeError(
                f"there is no option {option!r}",
                where="command line",
                choices=_OPTIONS,
                remedy=did_you_mean(option, _OPTIONS).strip() or "anfbuild --help lists them.",
            )
        elif "=" not in word and not word.startswith("~"):
            raise RecipeError(
                f"{word!r} is neither an option nor an override",
                where="command line",
                remedy=f"Overrides are KEY=VALUE; to build the recipe of that name write +recipe={word}.",
            )
        else:
            overrides.append(word)
    return Arguments(overrides=tuple(overrides), **found)


def _check_config(value: str) -> None:
    if value != "job":
        raise RecipeError(f"--cfg cannot print {value!r}", where="command line", choices=["job"])
