"""What the front end asks of a build, so that it can be given another one, and how it tells errors as JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from anfbuild.errors import AnfbuildError

if TYPE_CHECKING:
    from anfbuild.engine.run import Event
    from anfbuild.recipe import Recipe

INTERRUPTED = "interrupted; finished steps are kept: run the same command again to go on"


class Outcome(Protocol):
    """How a build went."""

    @property
    def exit_code(self) -> int: ...
    @property
    def key(self) -> str | None: ...
    @property
    def folder(self) -> Path | None: ...
    @property
    def results(self) -> dict[str, Any] | None: ...
    @property
    def error(self) -> AnfbuildError | None: ...
    @property
    def steps(self) -> Sequence[Mapping[str, Any]]: ...
    @property
    def planned(self) -> Sequence[str]: ...
    @property
    def failed(self) -> str | None: ...
    @property
    def summary(self) -> list[tuple[str, str, str]]: ...
    def to_json(self) -> dict[str, Any]: ...


class Build(Protocol):
    """Builds a recipe. `latest` moves the recipe's `latest` link; `folder` takes the outputs in its place;
    `notify` is told what the steps are at."""

    def __call__(
        self, recipe: Recipe, project: Path, *, latest: bool, folder: Path | None, notify: Callable[[Event], None]
    ) -> Outcome: ...


def describe(error: AnfbuildError) -> dict[str, Any]:
    """An error as JSON."""
    return {"what": error.what, "where": error.where, "choices": error.choices, "remedy": error.remedy}
