"""What became of a build, or of each job of a sweep, as JUnit XML, for `--junit FILE`: CI systems show it.

A suite a build, a case a step, a case a limit of a gate and one the placement contract. What cannot be judged, and a
step that was not reached, are skipped. What went wrong outside of the steps, as in the recipe, is an error of a case
named `recipe`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

from anfbuild.atomic import replacing
from anfbuild.errors import RecipeError, StepError
from anfbuild.report.gates import gate_name

_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, not even escaped."""
_COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def check(file: str, project: Path) -> Path:
    """Where the report goes; its folder is made. A link stays one. Raises RecipeError where it cannot be."""
    path = project / file
    try:
        path = path.resolve()
        path.parent.mkdir(parents=True, exist_ok=True)
        problem = "it is no file" if path.exists() and not path.is_file() else None  # no device is to be replaced
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
    if problem:
        raise RecipeError(
            f"the report cannot be written: {problem}", where=f"--junit {file}", remedy="Name a file in a folder."
        )
    return path


def suite(name: str, told: Mapping[str, Any]) -> Xml.Element:
    """The suite of one build. `told` holds of it

    - `planned`: the steps, each after what it needs; `steps`: those that ended, as the build's own document tells them
    - `failed`: the step that did not, or None; `error`: {what, where, choices, remedy}, or None
    - `results`: results.json, or None; `contract`: what became of the placement contract, or None
    """
    element = Xml.Element("testsuite", name=_text(name))
    steps = {step["step"]: step for step in told["steps"]}
    error = told["error"]
    for step in told["planned"]:
        _step(element, name, step, steps.get(step), error if step == told["failed"] else None)
    gates = (told["results"] or {}).get("gates") or []
    for gate in gates:
        _gate(element, name, gate)
    contract = told.get("contract")
    if contract is not None:
        _contract(element, name, contract)
    judged = [*gates, *([contract] if contract is not None else [])]
    if error is not None and told["failed"] is None and not any(one["passed"] is False for one in judged):
        case = _case(element, name, "recipe")
        _outcome(case, "error", str(error["what"]), _full(error))
    _count(element, [element], sum(step["seconds"] or 0 for step in steps.values()))
    return element


def broken(error: Mapping[str, Any]) -> Xml.Element:
    """The suite of a build of which there is nothing to tell but `error`."""
    return suite("anfbuild", {"planned": (), "steps": (), "failed": None, "error": error, "results": None})


def write(path: Path, suites: Sequence[Xml.Element]) -> None:
    """Write the report, atomically. Raises StepError where that cannot be."""
    root = Xml.Element("testsuites")
    root.extend(suites)
    _count(root, suites, sum(float(element.get("time", "0")) for element in suites))
    Xml.indent(root)
    try:
        with replacing(path) as partial:
            partial.write_bytes(Xml.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n")
    except OSError as error:
        raise StepError(
            f"the report cannot be written: {error.strerror or error}",
            where=str(path),
            remedy="Make the place writable and run again: all steps that ended are kept.",
        ) from error


def _step(
    suite: Xml.Element, name: str, step: str, ended: Mapping[str, Any] | None, error: Mapping[str, Any] | None
) -> None:
    case = _case(suite, f"{name}.steps", step, ended["seconds"] if ended else None)
    if error is not None:
        _outcome(case, "failure", str(error["what"]), _full(error))
    elif ended is None:
        _outcome(case, "skipped", "not reached")
    else:
        Xml.SubElement(case, "system-out").text = f"{'cached' if ended['hit'] else 'built'}, key {ended['key']}"


def _gate(suite: Xml.Element, name: str, gate: Mapping[str, Any]) -> None:
    case = _case(suite, f"{name}.gates", f"{gate_name(gate)} {gate['direction']}")
    told = f"{gate['value']} {gate['unit']}".strip() + f", limit {gate['direction']} {gate['limit']}"
    if gate["passed"] is None:
        _outcome(case, "skipped", str(gate.get("reason") or "not judged"))
    elif gate["passed"]:
        Xml.SubElement(case, "system-out").text = _text(told)
    else:
        _outcome(case, "failure", f"{gate_name(gate)} is {told}")


def _contract(suite: Xml.Element, name: str, contract: Mapping[str, Any]) -> None:
    case = _case(suite, f"{name}.contracts", "placement")
    if contract["passed"] is None:
        _outcome(case, "skipped", contract["told"])
    elif contract["passed"]:
        Xml.SubElement(case, "system-out").text = _text(contract["told"])
    else:
        _outcome(case, "failure", contract["told"])


def _case(suite: Xml.Element, classname: str, name: str, seconds: float | None = None) -> Xml.Element:
    time = f"{seconds or 0:.3f}"
    return Xml.SubElement(suite, "testcase", classname=_text(classname), name=_text(name), time=time)


def _outcome(case: Xml.Element, kind: str, message: str, text: str | None = None) -> None:
    element = Xml.SubElement(case, kind, message=_text(message))
    if text is not None:
        element.text = _text(text)


def _full(error: Mapping[str, Any]) -> str:
    lines = [f"{error['where']}: {error['what']}" if error.get("where") else error["what"]]
    lines += [f"valid choices: {', '.join(error['choices'])}"] if error.get("choices") else []
    lines += [error["remedy"]] if error.get("remedy") else []
    return "\n".join(lines)


def _count(element: Xml.Element, suites: Iterable[Xml.Element], seconds: float) -> None:
    cases = [case for suite in suites for case in suite.iter("testcase")]
    element.set("tests", str(len(cases)))
    for attribute, kind in _COUNTED.items():
        element.set(attribute, str(sum(case.find(kind) is not None for case in cases)))
    element.set("time", f"{seconds:.3f}")


def _text(text: str) -> str:
    """`text` with what XML cannot hold as Python's escapes."""
    return _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)
