"""What a build does about its placement contract."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anfbuild.cli.contract.file import load, save
from anfbuild.cli.contract.judge import Judged, judge, note
from anfbuild.engine.store import Store
from anfbuild.errors import RecipeError, StepError
from anfbuild.recipe import Recipe


@dataclass(frozen=True)
class Hold:
    """Holds one build to its contract, or with `accept` the contract to the build."""

    recipe: Recipe
    project: Path
    accept: bool

    def check(self) -> None:
        """Before anything is built. Raises RecipeError for a file that is no contract, and for a build that comes to no
        placement to accept."""
        goal = self.recipe.config["goal"]
        if self.accept and goal != "report":
            raise RecipeError(
                f"--accept writes the placement of a whole build, and this one ends at {goal!r}",
                where="command line",
                remedy="Leave goal=... out.",
            )
        load(self.recipe.name, self.project)

    def judge(self, folder: Path, results: dict[str, Any], store: Store, *, sound: bool) -> Judged | None:
        """Judge what was exported to `folder`, where `results.json` then says what is not listed; None where there is
        no contract. Where it is to be accepted and the build is `sound`, write it first.

        Raises StepError where there is no placement to accept, or it cannot be written.
        """
        contract = load(self.recipe.name, self.project)
        if contract.rows is None and not self.accept:
            return None
        judged = judge(contract, self.recipe, folder, results)
        if self.accept and sound:
            judged = self._accept(judged, store)
        if judged.asserted:
            note(results, judged, folder)
        return judged

    def _accept(self, judged: Judged, store: Store) -> Judged:
        if judged.off is None:
            raise StepError(
                f"there is no placement to accept: {judged.reason}",
                where=judged.file,
                remedy="Build with --accept on a host that has the compiler.",
            )
        with store.lock(f"placement-of-{self.recipe.name}"):
            save(load(self.recipe.name, self.project), judged.keys, judged.off)
        return replace(judged, unlisted=(), asserted=True, accepted=True)
