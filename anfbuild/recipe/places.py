"""Which file and line, or which override, gave a key its value. Worked out only when somebody asks."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from hydra.core.override_parser.types import Override
from hydra.types import RunMode

from anfbuild.recipe.catalogue import PRIMARY, Catalogue
from anfbuild.recipe.document import Document

COMMAND_LINE = "command line"


class Places:
    """The places of one composition: its files in the order of their merging, and the overrides on top."""

    def __init__(self, catalogue: Catalogue, group_overrides: Sequence[str], values: Sequence[Override]) -> None:
        self.group_overrides = list(group_overrides)
        self._catalogue = catalogue
        self._values = values

    def of(self, key: str) -> str:
        """The place of `key`, or of the nearest key above it that was given."""
        wanted = key
        while wanted:
            if any(_is_within(wanted, override.key_or_group) for override in self._values):
                return COMMAND_LINE
            for package, document in reversed(self._files):
                if wanted == package:
                    return document.shown
                inside = wanted.removeprefix(f"{package}.") if package else wanted
                if (not package or inside != wanted) and (line := document.line(inside)) is not None:
                    return f"{document.shown}:{line}"
            if any(_is_within(override.key_or_group, wanted) for override in self._values):
                return COMMAND_LINE  # which gave what lies below, and so made the key
            wanted = wanted[: max(wanted.rfind("."), wanted.rfind("["), 0)]
        return self._files[-1][1].shown

    @functools.cached_property
    def _files(self) -> list[tuple[str, Document]]:
        """(package, file), the one that wins last."""
        found = []
        listed = self._catalogue.loader.compute_defaults_list(PRIMARY, self.group_overrides, RunMode.RUN)
        for default in listed.defaults:
            document = self._catalogue.document(default.config_path or "")
            if document is not None:
                found.append((default.package or "", document))
        return found


def _is_within(key: str, above: str) -> bool:
    return key == above or key.startswith((f"{above}.", f"{above}["))
