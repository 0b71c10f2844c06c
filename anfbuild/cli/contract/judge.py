"""Holding a build to its placement contract when it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anfbuild.atomic import replacing
from anfbuild.cli.contract.file import Contract, Key, Listed
from anfbuild.package import canonical
from anfbuild.placement.rows import read_csv
from anfbuild.placement.summary import off_htp
from anfbuild.recipe import Recipe

_MOST = 8
"""Nodes that a message names."""


@dataclass(frozen=True)
class Judged:
    """What became of a contract. `off` are the nodes off the HTP, None where that is not known, for `reason`; of these
    `unlisted` are not in the contract; `returned` are in it, and on the HTP again, or gone. Without a file nothing is
    asserted: `asserted` is False."""

    file: str
    keys: tuple[Key, ...]
    off: tuple[Listed, ...] | None
    unlisted: tuple[Listed, ...] = ()
    returned: tuple[Listed, ...] = ()
    reason: str | None = None
    asserted: bool = True
    accepted: bool = False

    @property
    def passed(self) -> bool | None:
        """Whether the contract holds; None where it is not judged."""
        return None if self.off is None or not self.asserted else not self.unlisted

    @property
    def missed(self) -> str:
        """What a message says of the nodes that are not listed."""
        told = [f"{row.name} ({row.op_type}) on the {row.unit}: {row.reason}" for row in self.unlisted[:_MOST]]
        more = f"; and {len(self.unlisted) - _MOST} more" if len(self.unlisted) > _MOST else ""
        return f"{len(self.unlisted)} node(s) left the HTP that {self.file} does not list: {'; '.join(told)}{more}"

    @property
    def told(self) -> bool:
        """Whether there is anything to tell."""
        return self.asserted or self.accepted

    @property
    def summary(self) -> tuple[str, str, str]:
        """(label, value, source) for the terminal."""
        if self.off is None:
            told = f"not judged: {self.reason}"
        elif self.accepted:
            told = f"written: {len(self.off)} node(s) may be off the HTP"
        elif self.unlisted:
            told = f"MISSED: {len(self.unlisted)} node(s) left the HTP unlisted"
        else:
            told = f"holds: {len(self.off)} node(s) off the HTP, all listed"
        if self.returned and not self.accepted:
            names = ", ".join(row.name for row in self.returned[:_MOST])
            more = f" and {len(self.returned) - _MOST} more" if len(self.returned) > _MOST else ""
            told += f"; listed and off the HTP no longer: {names}{more} (--accept takes them out)"
        return ("contract placement", told, "reported by the compiler" if self.off is not None else "")

    def to_json(self) -> dict[str, Any]:
        """For `--json`, a sweep's records and JUnit."""
        return {
            "file": self.file,
            "passed": self.passed,
            "accepted": self.accepted,
            "unlisted": [row.name for row in self.unlisted],
            "returned": [row.name for row in self.returned],
            "told": self.missed if self.unlisted else self.summary[1],
        }


def judge(contract: Contract, recipe: Recipe, folder: Path, results: Mapping[str, Any]) -> Judged:
    """Compare the placement tables in `folder`, where a build was exported to, with the contract."""
    parts: Mapping[str, Any] = recipe.components or {"main": recipe.config}
    keys = {name: _key(recipe, name, config) for name, config in parts.items()}
    off: list[Listed] = []
    for name, key in keys.items():
        table = folder / (name if recipe.components else "") / "placement.csv"
        if not table.is_file():
            why = results["reasons"].get("/placement/htp", "the build has no placement")
            return Judged(contract.shown, tuple(keys.values()), None, reason=why, asserted=contract.rows is not None)
        off += [Listed(*key, row.node, row.op_type, row.unit, row.reason) for row in off_htp(read_csv(table))]
    rows = contract.rows or ()
    known = {(row.key, row.node) for row in rows}
    now = {(row.key, row.node) for row in off}
    return Judged(
        contract.shown,
        tuple(keys.values()),
        tuple(off),
        tuple(row for row in off if (row.key, row.node) not in known),
        tuple(row for row in rows if row.key in keys.values() and (row.key, row.node) not in now),
        asserted=contract.rows is not None,
    )


def note(results: dict[str, Any], judged: Judged, folder: Path) -> None:
    """Say in the document of a build, and in its file, which nodes the contract does not list, in the place of all that
    are off the HTP."""
    if judged.off is None:
        return
    results["placement"]["unlisted"] = [row.name for row in judged.unlisted]
    for name, own in results.get("components", {}).items():
        own["placement"]["unlisted"] = [row.node for row in judged.unlisted if row.component == name]
    with replacing(folder / "results.json") as partial:
        partial.write_bytes(canonical(results))


def _key(recipe: Recipe, component: str, config: Mapping[str, Any]) -> Key:
    return recipe.config["target"]["soc"], config["quantization"]["scheme"], component
