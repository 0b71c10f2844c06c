"""`anfbuild lint MODEL|+recipe=NAME`: what a model will run where, why, and how to mend it, before anything is built.

Only the structure of the model is looked at. Exit code 3: a build would stop, or make something wrong.
"""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from anfbuild.cli.arguments import Arguments
from anfbuild.cli.console import Console
from anfbuild.cli.subject import Subject, of_model, of_recipe
from anfbuild.errors import RecipeError, StepError
from anfbuild.graph.constraints import RULES, Aim, Finding, Inspection, document, inspect
from anfbuild.simulator.bounds import NodeBound, bounds
from anfbuild.steps.aim import aim_for

FAILED = 3
_SHOWN = 3
"""Nodes of a rule that the text names; the documents name all."""


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Raises RecipeError for what does not belong on the command line, StepError for what is no model."""
    if "--sarif" in arguments.options and arguments.json:
        raise RecipeError("--sarif and --json are two documents", where="command line", remedy="Ask for one of them.")
    if "--rules" in arguments.options:
        return _rules(arguments, console)
    with (of_model if arguments.words else of_recipe)(arguments, project) as subject:
        target = subject.target
        aim = aim_for(target["soc_model"], subject.scheme, soc=target.get("soc"), vtcm_mb=target.get("vtcm_mb"))
        found = inspect(subject.read(), aim, subject.shapes, subject.outputs)
    costs = _costs(found, subject.target, aim)
    code = FAILED if found.failed else 0
    if "--sarif" in arguments.options:
        from anfbuild.cli.sarif import sarif

        console.print(json.dumps(sarif(found.findings, subject.shown), indent=2))
    elif not arguments.json:
        for line in words(found, aim, costs):
            console.print(line)
    return code, _document(subject, aim, found, costs, code)


def words(found: Inspection, aim: Aim, costs: Sequence[NodeBound] | StepError | RecipeError | None) -> Iterator[str]:
    """What is told: where the nodes run, what bounds them, and each rule with its nodes, the gravest first."""
    counts: Counter[str] = Counter(placed.unit for placed in found.placement)
    units = ", ".join(f"{counts[unit]} {_UNITS[unit]}" for unit in _UNITS if counts[unit])
    yield f"{aim.target} ({aim.arch}, {aim.vtcm_mb} MB VTCM), {aim.precision.name}: {units or 'no nodes'} (predicted)"
    if isinstance(costs, list) and costs:
        total = sum(cost.ms for cost in costs)
        shares = {bound: sum(c.ms for c in costs if c.bound == bound) / total for bound in _BOUNDS}
        said = ", ".join(f"{share:.0%} {_BOUNDS[bound]}" for bound, share in shares.items() if share >= 0.005)
        yield f"time of the nodes (predicted, were all on the HTP): {said}"
    for (severity, rule), entries in groupby(found.findings, key=lambda entry: (entry.severity, entry.rule)):
        yield from ("", f"{severity.value} {rule}: {RULES[rule].message}")
        yield from _group(list(entries))
    levels = Counter(finding.severity.value for finding in found.findings)
    yield from ("", ", ".join(f"{levels[level]} {level}(s)" for level in ("error", "warning", "note")))


_UNITS = {"HTP": "nodes on the HTP", "CPU": "on the CPU", "folded": "folded", "removed": "removed"}
_BOUNDS = {
    "compute": "bound by compute",
    "dram": "by DRAM",
    "vtcm": "by VTCM",
    "overhead": "by the overhead of small nodes",
}


def _group(entries: Sequence[Finding]) -> Iterator[str]:
    for entry in entries[:_SHOWN]:
        place = f"{entry.node} ({entry.op_type})" if entry.node else "the model"
        yield f"    {place}{f': {entry.detail}' if entry.detail else ''}"
    if len(entries) > _SHOWN:
        yield f"    and {len(entries) - _SHOWN} more"
    yield f"  {entries[0].consequence}"
    yield f"  {entries[0].remedy}"


def _costs(found: Inspection, target: Mapping[str, object], aim: Aim) -> Sequence[NodeBound] | StepError | RecipeError:
    """What bounds the nodes, or why that cannot be told."""
    try:
        return bounds(found.sizes, target, aim.precision.activation_bits, aim.precision.weight_bits)
    except (StepError, RecipeError) as error:  # a shape that is not known; a chip without rates
        return error


def _document(
    subject: Subject,
    aim: Aim,
    found: Inspection,
    costs: Sequence[NodeBound] | StepError | RecipeError,
    code: int,
) -> dict[str, Any]:
    is_known = not isinstance(costs, Exception)
    return {
        "exit_code": code,
        "model": subject.shown,
        "target": aim.target,
        "arch": aim.arch,
        "quantization": aim.precision.name,
        "findings": [finding.to_json() for finding in found.findings],
        "placement": [placed.to_json() for placed in found.placement],
        "nodes": [cost.to_json() for cost in costs] if not isinstance(costs, Exception) else None,
        "source": "predicted",
        "reasons": {} if is_known else {"/nodes": str(costs)},
    }


def _rules(arguments: Arguments, console: Console) -> tuple[int, dict[str, Any]]:
    if not arguments.json:
        console.print(document().rstrip("\n"))
    rules = [
        {field.name: getattr(entry, field.name) for field in dataclasses.fields(entry) if field.name != "check"}
        | {"severity": entry.severity.value}
        for entry in RULES.values()
    ]
    return 0, {"rules": rules}
