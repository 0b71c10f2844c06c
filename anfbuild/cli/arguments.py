"""The command line, taken apart by hand: argparse knows no overrides, and its errors have no `did you mean`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from anfbuild.cli.verbs import BUILD, VERBS, Verb
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
_OPTIONS = [*_FLAGS, *_CONFIG]


@dataclasses.dataclass(frozen=True)
class Arguments:
    """What was asked for."""

    verb: str | None = None
    words: tuple[str, ...] = ()
    """What follows the verb: one word for each that it names."""
    options: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The verb's own, such as `--junit`, with their values; one that takes none has an empty value."""
    overrides: tuple[str, ...] = ()
    multirun: bool = False
    config: bool = False
    json: bool = False
    debug: bool = False
    completion: bool = False
    help: bool = False
    version: bool = False


def parse(argv: Sequence[str]) -> Arguments:
    """Raises RecipeError: an unknown option or verb, too few words or too many, an option without its value."""
    words_left = list(argv)
    verb = words_left.pop(0) if words_left and _is_word(words_left[0]) else None
    if verb is not None and verb not in VERBS:
        raise RecipeError(
            f"{verb!r} is neither a verb, an option nor an override",
            where="command line",
            choices=sorted(VERBS),
            remedy=f"{did_you_mean(verb, VERBS)}Overrides are KEY=VALUE; to build the recipe of that name write "
            f"+recipe={verb}.",
        )
    expected = BUILD if verb is None else VERBS[verb]
    flags: dict[str, bool] = {}
    options: dict[str, str] = {}
    words: list[str] = []
    overrides: list[str] = []
    while words_left:
        word = words_left.pop(0)
        option, equals, value = word.partition("=")
        if option in _CONFIG:
            _check_config(value if equals else words_left.pop(0) if words_left else "")
            flags["config"] = True
        elif word in _FLAGS:
            flags[_FLAGS[word]] = True
        elif option in expected.options:
            options[option] = _value(option, expected.options[option], value if equals else None, words_left)
        elif word.startswith("-"):
            raise _unknown_option(option, verb, expected.options)
        elif not _is_word(word):
            overrides.append(word)
        else:
            words.append(word)
    arguments = Arguments(verb, tuple(words), options, tuple(overrides), **flags)
    if not arguments.help:
        _check_words(words, verb, expected)
        _check_resume(arguments)
    return arguments


def _is_word(text: str) -> bool:
    """Whether `text` is neither an option nor an override."""
    return "=" not in text and not text.startswith(("-", "~"))


def _value(option: str, name: str | None, given: str | None, words_left: list[str]) -> str:
    if name is None:
        if given is not None:
            raise RecipeError(f"{option} takes no value", where="command line", remedy=f"Write {option}.")
        return ""
    value = given if given is not None else words_left.pop(0) if words_left else ""
    if not value or (given is None and value.startswith("-")):
        raise RecipeError(f"{option} needs a value", where="command line", remedy=f"Write {option} {name}.")
    return value


def _unknown_option(option: str, verb: str | None, own: Mapping[str, str | None]) -> RecipeError:
    known = sorted([*_OPTIONS, *own])
    return RecipeError(
        f"there is no option {option!r}" + (f" of {verb!r}" if verb else ""),
        where="command line",
        choices=known,
        remedy=did_you_mean(option, known).strip() or "anfbuild --help lists them.",
    )


def _check_words(words: Sequence[str], verb: str | None, takes: Verb) -> None:
    expected = takes.words
    if len(words) == len(expected) or (takes.optional and not words):
        return
    if verb is None:
        raise RecipeError(
            f"{words[0]!r} is neither an option nor an override",
            where="command line",
            remedy=f"Overrides are KEY=VALUE; to build the recipe of that name write +recipe={words[0]}. A verb comes "
            "first.",
        )
    raise RecipeError(
        f"{verb!r} takes {len(expected)} word(s), not {len(words)}",
        where="command line",
        remedy=f"Write anfbuild {' '.join([verb, *expected])} ...",
    )


def _check_resume(arguments: Arguments) -> None:
    """A sweep goes on with the jobs that it has."""
    if "--resume" not in arguments.options or arguments.verb is not None:
        return
    if not arguments.multirun:
        raise RecipeError(
            "--resume goes on with a sweep", where="command line", remedy="Write anfbuild -m --resume ID."
        )
    if arguments.overrides:
        raise RecipeError(
            f"{arguments.overrides[0]!r} cannot be given with --resume: a sweep goes on with its own overrides",
            where="command line",
            remedy="Remove it, or start a new sweep without --resume: finished steps are in the store.",
        )


def _check_config(value: str) -> None:
    if value != "job":
        raise RecipeError(f"--cfg cannot print {value!r}", where="command line", choices=["job"])
