"""Findings as SARIF 2.1.0, the format that code hosts show beside a change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from anfbuild import __version__
from anfbuild.graph.constraints import RULES, Finding

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(judged: Sequence[tuple[Sequence[Finding], str, str | None]]) -> dict[str, Any]:
    """The log of one run over models: the findings of each, its file, relative to the project where it lies in it, or
    its recipe, and the component that it is."""
    names = list(RULES)
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {"name": "anfbuild", "version": __version__, "rules": [_rule(name) for name in names]}
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    _result(finding, names.index(finding.rule), model, component)
                    for findings, model, component in judged
                    for finding in findings
                ],
            }
        ],
    }


def _rule(name: str) -> dict[str, Any]:
    entry = RULES[name]
    return {
        "id": name,
        "shortDescription": {"text": entry.message},
        "fullDescription": {"text": entry.consequence},
        "help": {"text": entry.remedy},
        "defaultConfiguration": {"level": entry.severity.value},
    }


def _result(finding: Finding, index: int, model: str, component: str | None) -> dict[str, Any]:
    where: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": quote(model)}}}
    inside = [name for name in (component, finding.node) if name is not None]
    if inside:
        where["logicalLocations"] = [{"name": inside[-1], "fullyQualifiedName": "/".join(inside)}]
    return {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.severity.value,
        "message": {"text": f"{finding.message} {finding.consequence} {finding.remedy}"},
        "locations": [where],
        "properties": {"opType": finding.op_type, "mendedBy": finding.mended_by},
    }
