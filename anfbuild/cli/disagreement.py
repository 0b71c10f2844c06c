"""What a build does where the emulator and the CPU do not agree: it finds out where they part.

The step `diagnose` is run after the verdict, for the components whose gate `agreement_lsb` is missed, and is kept like
any other; a build that holds its gates does not plan it. Where it fails, the missed gate is told all the same.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anfbuild.atomic import replacing
from anfbuild.engine.faults import as_user_error
from anfbuild.engine.run import Build

GATE, STEP, FILE = "agreement_lsb", "diagnose", "diagnosis.json"

_AGREED = 16.0
"""What a build without the gate is held to: that of conf/gates/default.yaml."""


@dataclasses.dataclass(frozen=True)
class Diagnosed:
    """What was found; nothing where no gate on agreement was missed."""

    results: dict[str, Any]
    """results.json, with the diagnosis in words."""
    files: Sequence[str] = ()
    """What was exported, as paths in the build's folder."""
    causes: Sequence[str] = ()
    """Of each component: the stage, the node and by how much."""
    remedies: Sequence[str] = ()
    """Of each: the rule, and what to do."""


def agreed(*gates: Mapping[str, Mapping[str, float | None]]) -> float:
    """LSB by which the emulator may differ from the CPU: the least of what these gates say."""
    limits = [limit for each in gates if (limit := each.get(GATE, {}).get("max")) is not None]
    return float(min(limits, default=_AGREED))


def below(part: str | None, file: str) -> str:
    """The file's name in the build's folder: below the component's name where there are several."""
    return f"{part}/{file}" if part else file


def diagnosed(run: Build, results: dict[str, Any], missed: Sequence[Mapping[str, Any]], target: Path) -> Diagnosed:
    """Diagnose the components whose agreement gate is among the `missed` ones; report.html and results.json in the
    folder `target` get a section on it. Passes KeyboardInterrupt alone."""
    parts = dict.fromkeys(_component(gate, results) for gate in missed if gate["name"] == GATE)
    if not parts:
        return Diagnosed(results)
    from anfbuild import diagnosis
    from anfbuild.package import canonical
    from anfbuild.report.diagnosis import section, with_words

    files, causes, remedies, words = [], [], [], []
    for part in parts:
        step, named = (f"{STEP}[{part}]", f"{part}: ") if part else (STEP, "")
        try:
            run.result(step)
            run.export(step, FILE, target / below(part, FILE))
            document = json.loads((target / below(part, FILE)).read_text(encoding="utf-8"))
        except Exception as error:  # the gate is missed, whatever becomes of the search for the cause
            told = as_user_error(step, error, target)
            words.append(f"{named}the cause was not found: {' '.join(told.what.split())}")
            causes.append(words[-1])
            continue
        files.append(below(part, FILE))
        words += [f"{named}{sentence}" for sentence in document["words"]]
        found = diagnosis.remedy(document)
        if found is not None:
            causes.append(f"{named}{found[0]}")
            remedies.append(found[1])
    amended = with_words(results, words)
    page = section((target / "report.html").read_text(encoding="utf-8"), words)
    for name, data in {"results.json": canonical(amended), "report.html": page.encode()}.items():
        with replacing(target / name) as partial:
            partial.write_bytes(data)
    return Diagnosed(amended, files, causes, remedies)


def _component(gate: Mapping[str, Any], results: Mapping[str, Any]) -> str | None:
    """Whose gate it is: of a gate on the whole, the component that is furthest off; None: there is one model."""
    name = gate.get("component") or results["agreement"].get("component")
    return None if name is None else str(name)
