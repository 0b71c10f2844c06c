"""Which file and line, or which override, gave a key its value. Worked out only when somebody asks."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from hydra.core.override_parser.types import Override
from hydra.types import RunMode

from anfbuild.recipe.catalogue import PRIMARY, Catalogue
from anfbuild.recipe.document import Document

COMMAND_LINE = "command line"


class Places:
    """The places of one composition: its files in the order of their merging, and the overrides on top."""

    def __init__(self, catalogue: Catalogue, group_overrides: Sequence[str], values: Sequence[Override]) -> None:
        self.group_overrides = list(group_overrides)
        self.choices: list[str] = []
        """What the components choose, as Hydra's overrides: `+source@components.landmark.source=hand_landmark`."""
        self._catalogue = catalogue
        self._values = values

    def of(self, key: str) -> str:
        """The place of `key`, or of the nearest key above it that was given."""
        return next(filter(None, map(self.given, upwards(key))), self._files[-1][1].shown)

    def of_component(self, name: str, key: str) -> str:
        """The place of what the component `name` has at `key`: its own, of the file that it chose, or the recipe's."""
        own = f"components.{name}"
        chosen = any(f"@{own}.{key.partition('.')[0]}=" in choice for choice in self.choices)
        for wanted in upwards(key):
            place = self.given(f"{own}.{wanted}") or (None if chosen else self.given(wanted))
            if place is not None:
                return place
        return self.of(own)

    def given(self, key: str) -> str | None:
        """Where `key` itself was given; None where it was not."""
        if any(_is_within(key, override.key_or_group) for override in self._values):
            return COMMAND_LINE
        for package, document in reversed([*self._chosen, *self._files]):
            if key == package:
                return document.shown
            inside = key.removeprefix(f"{package}.") if package else key
            if (not package or inside != key) and (line := document.line(inside)) is not None:
                return f"{document.shown}:{line}"
        if any(_is_within(override.key_or_group, key) for override in self._values):
            return COMMAND_LINE  # which gave what lies below, and so made the key
        return None

    @functools.cached_property
    def _files(self) -> list[tuple[str, Document]]:
        """(package, file), the one that wins last."""
        return self._listed(PRIMARY, self.group_overrides)

    @functools.cached_property
    def _of_choices(self) -> list[tuple[str, Document]]:
        return self._listed(None, self.choices)

    @property
    def _chosen(self) -> list[tuple[str, Document]]:
        """The files that the components chose."""
        return self._of_choices if self.choices else []

    def _listed(self, primary: str | None, overrides: list[str]) -> list[tuple[str, Document]]:
        found = []
        for default in self._catalogue.loader.compute_defaults_list(primary, overrides, RunMode.RUN).defaults:
            document = self._catalogue.document(default.config_path or "")
            if document is not None:
                found.append((default.package or "", document))
        return found


def upwards(key: str) -> Iterator[str]:
    """`key`, and the keys above it: `a.b[1]`, `a.b`, `a`."""
    while key:
        yield key
        key = key[: max(key.rfind("."), key.rfind("["), 0)]


def _is_within(key: str, above: str) -> bool:
    return key == above or key.startswith((f"{above}.", f"{above}["))
