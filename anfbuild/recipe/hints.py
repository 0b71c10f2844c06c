"""The last line of an error: what to do next."""

from __future__ import annotations

from collections.abc import Iterable

from anfbuild.errors import did_you_mean


def nearest(word: object, choices: Iterable[str], otherwise: str | None = None) -> str | None:
    """`did you mean 'x'?` where one of `choices` is near `word`, else `otherwise`."""
    return did_you_mean(str(word), choices).strip() or otherwise
