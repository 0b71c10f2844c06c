"""What became of one build, for the terminal and as a document."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.cli.contract import Judged
from anfbuild.cli.findings import rows
from anfbuild.cli.seam import describe
from anfbuild.errors import AnfbuildError


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one build. `error` is null where it went well; `results` where it did not get so far."""

    name: str
    exit_code: int = 0
    key: str | None = None
    folder: Path | None = None
    results: dict[str, Any] | None = None
    steps: Sequence[Mapping[str, Any]] = ()
    error: AnfbuildError | None = None
    planned: Sequence[str] = ()
    """The steps of the goal, each after what it needs."""
    failed: str | None = None
    """The step that broke."""
    files: Sequence[str] = ()
    """What was exported, as paths in `folder`. Something else may lie there too."""
    contract: Judged | None = None
    """What became of the placement contract; None where there is none."""
    lint: Sequence[Mapping[str, Any]] = ()
    """With `goal=convert`, what lint found, of each component."""

    @property
    def summary(self) -> list[tuple[str, str, str]]:
        """(label, value, source) rows for the terminal."""
        from anfbuild.report.summary import summary

        if self.results is None:
            return rows(self.lint, self.name)
        told = [self.contract.summary] if self.contract is not None and self.contract.told else []
        return [*summary(self.results), *told]

    def to_json(self) -> dict[str, Any]:
        """As one JSON document, for `--json`."""
        return {
            "recipe": self.name,
            "exit_code": self.exit_code,
            "key": self.key,
            "folder": None if self.folder is None else str(self.folder),
            "results": self.results,
            "steps": list(self.steps),
            "lint": list(self.lint),
            "contract": None if self.contract is None else self.contract.to_json(),
            "error": None if self.error is None else describe(self.error),
        }
