"""The one kind of error that a user sees: it names the thing, the place, the valid choices and the next step.

The exit code travels with the error, so that a room need not know who calls it:
1 a step failed, 2 the recipe or the command line is wrong, 3 a gate or a contract failed, 4 versions do not match.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AnfbuildError(Exception):
    """Base of every error that is shown to the user without a traceback.

    `what` says what is wrong with which thing, `where` is a place ("recipes/a.yaml:12", "node Conv_3", "command
    line"), `choices` are the valid values and `remedy` is the next step to take, as an imperative sentence.
    """

    exit_code = 1

    def __init__(
        self, what: str, *, where: str | None = None, choices: Iterable[object] = (), remedy: str | None = None
    ) -> None:
        self.what = what
        self.where = where
        self.choices = [str(choice) for choice in choices]
        self.remedy = remedy
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.choices:
            lines.append(f"  valid choices: {', '.join(self.choices)}")
        if self.remedy:
            lines.append(f"  {self.remedy}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword arguments do not survive pickling (worker processes) on their own.
        return _restore, (type(self), self.what, self.where, self.choices, self.remedy)


def _restore(
    kind: type[AnfbuildError], what: str, where: str | None, choices: list[str], remedy: str | None
) -> AnfbuildError:
    return kind(what, where=where, choices=choices, remedy=remedy)


class StepError(AnfbuildError):
    """A step could not do its work: bad model, bad data, a compiler's refusal, a full disk."""

    exit_code = 1


class Unavailable(StepError):
    """This host cannot give the value: it lacks a part, the time or the memory. Nothing is said against the model."""


class RecipeError(AnfbuildError):
    """The recipe or the command line asks for something that cannot be: a typo, a wrong value, an open dimension."""

    exit_code = 2


class GateError(AnfbuildError):
    """A gate or a contract of the recipe does not hold."""

    exit_code = 3


class VersionError(AnfbuildError):
    """A part of the toolchain has another version than the recipe's version matrix allows."""

    exit_code = 4


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """`"did you mean 'x'? "` for the nearest of `choices`, or an empty string where none is near."""
    near = difflib.get_close_matches(word, list(choices), n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}? " if near else ""
