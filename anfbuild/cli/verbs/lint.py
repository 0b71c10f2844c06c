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
from anfbuild.cli.subject import COMMAND_LINE, Subject, of_model, of_recipe
from anfbuild.errors import AnfbuildError, GateError, RecipeError, StepError
from anfbuild.graph.constraints import RULES, Aim, Finding, Inspection, document, inspect
from anfbuild.simulator.bounds import NodeBound, bounds
from anfbuild.simulator.work import FLOAT_BITS
from anfbuild.steps.aim import aim_for

FAILED = GateError.exit_code
_SHOWN = 3
"""Nodes of a rule that the text names; the documents name all."""


@dataclasses.dataclass(frozen=True)
class Judged:
    """One model, and what was found."""

    subject: Subject
    aim: Aim
    found: Inspection
    costs: Sequence[NodeBound] | AnfbuildError
    """What bounds the nodes, or why that cannot be told."""


def run(arguments: Arguments, project: Path, console: Console) -> tuple[int, dict[str, Any]]:
    """Raises RecipeError for what does not belong on the command line, StepError for what is no model."""
    if "--sarif" in arguments.options and arguments.json:
        raise RecipeError("--sarif and --json are two documents", where=COMMAND_LINE, remedy="Ask for one of them.")
    if "--rules" in arguments.options:
        return _rules(arguments, console)
    with (of_model if arguments.words else of_recipe)(arguments, project) as subjects:
        judged = [_judge(subject) for subject in subjects]
    code = FAILED if any(one.found.failed for one in judged) else 0
    if "--sarif" in arguments.options:
        from anfbuild.cli.sarif import sarif

        log = sarif([(one.found.findings, one.subject.shown, one.subject.component) for one in judged])
        console.print(json.dumps(log, indent=2))
    elif not arguments.json:
        for number, one in enumerate(judged):
            for line in (*([""] if number else []), *words(one)):
                console.print(line)
    return code, _document(judged, code)


def words(judged: Judged) -> Iterator[str]:
    """What is told: where the nodes run, what bounds them, and each rule with its nodes, the gravest first."""
    aim, found, costs = judged.aim, judged.found, judged.costs
    counts: Counter[str] = Counter(placed.unit for placed in found.placement)
    units = ", ".join(f"{counts[unit]} {_UNITS[unit]}" for unit in _UNITS if counts[unit])
    whose = "" if judged.subject.component is None else f"component {judged.subject.component!r}: "
    chip = f"{aim.target} ({aim.arch}, {aim.vtcm_mb} MB VTCM)"
    yield f"{whose}{chip}, {aim.precision.name}: {units or 'no nodes'} (predicted)"
    if isinstance(costs, AnfbuildError):
        yield f"what bounds the nodes is not known: {costs.what}"
    elif costs:
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


def _judge(subject: Subject) -> Judged:
    try:
        model, target = subject.read(), subject.target
        aim = aim_for(target["soc_model"], subject.scheme, model, soc=target.get("soc"), vtcm_mb=target.get("vtcm_mb"))
        found = inspect(model, aim, subject.shapes, subject.outputs)
    except AnfbuildError as error:
        if subject.component is not None:
            error.what = f"component {subject.component!r}: {error.what}"
        raise
    return Judged(subject, aim, found, _costs(found, subject.target, aim))


def _costs(found: Inspection, target: Mapping[str, object], aim: Aim) -> Sequence[NodeBound] | AnfbuildError:
    """What bounds the nodes, or why that cannot be told."""
    bits = aim.precision.activation_bits, aim.precision.weight_bits
    if aim.precision.as_is:  # the model states its own, node by node: nothing is narrowed
        bits = FLOAT_BITS, FLOAT_BITS
    try:
        return bounds(found.sizes, target, *bits)
    except (StepError, RecipeError) as error:  # a shape that is not known; a chip without rates
        return error


def _document(judged: Sequence[Judged], code: int) -> dict[str, Any]:
    """Of one model its own document; of several the same keys over all, their entries with the component's name, and
    below `components` what each has for itself."""
    documents = [_of_one(one) for one in judged]
    if judged[0].subject.component is None:
        return {"exit_code": code, **documents[0]}
    parts = {str(one.subject.component): document for one, document in zip(judged, documents, strict=True)}
    merged = {
        key: [{"component": name, **entry} for name, part in parts.items() for entry in part[key] or ()]
        for key in ("findings", "placement", "nodes")
    }
    schemes = {part["quantization"] for part in documents}
    reasons = {} if len(schemes) == 1 else {"/quantization": "each component has its own: see components"}
    for name, part in parts.items():
        reasons |= {f"/components/{name}{at}": why for at, why in part["reasons"].items()}
    return {
        "exit_code": code,
        **{key: documents[0][key] for key in ("model", "target", "arch")},
        "quantization": schemes.pop() if len(schemes) == 1 else None,
        **merged,
        "components": {
            name: {
                "exit_code": FAILED if one.found.failed else 0,
                "quantization": part["quantization"],
                "nodes": None if part["nodes"] is None else len(part["nodes"]),
            }
            for (name, part), one in zip(parts.items(), judged, strict=True)
        },
        "source": "predicted",
        "reasons": reasons,
    }


def _of_one(judged: Judged) -> dict[str, Any]:
    costs = judged.costs
    return {
        "model": judged.subject.shown,
        "target": judged.aim.target,
        "arch": judged.aim.arch,
        "quantization": judged.aim.precision.name,
        "findings": [finding.to_json() for finding in judged.found.findings],
        "placement": [placed.to_json() for placed in judged.found.placement],
        "nodes": None if isinstance(costs, AnfbuildError) else [cost.to_json() for cost in costs],
        "source": "predicted",
        "reasons": {"/nodes": str(costs)} if isinstance(costs, AnfbuildError) else {},
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
