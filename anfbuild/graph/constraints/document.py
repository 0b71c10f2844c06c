"""docs/supported-ops.md: the rules, and the operators that the HTP takes, as people read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from anfbuild.graph.constraints.rule import RULES, Rule
from anfbuild.graph.constraints.support import Case, Verdict, table

_COLUMNS = {"int8": "int8_per_channel", "a16w8": "a16w8_per_channel", "fp16": "float"}
"""Heading -> precision of the table."""


def document() -> str:
    """The page, as Markdown."""
    return "\n".join([*_head(), *_rules(), *_operators()]) + "\n"


def _head() -> Iterator[str]:
    yield "# What `anfbuild lint` knows"
    yield ""
    yield "Written by `anfbuild lint --rules`; a test holds it to the rules and to the table of operators."
    yield ""


def _rules() -> Iterator[str]:
    yield "## Rules"
    for kind, entries in groupby(RULES.values(), key=lambda entry: entry.kind):
        yield from ("", f"### {kind.capitalize()}", "", "| rule | what | else | mended by |", "|---|---|---|---|")
        yield from map(_rule, entries)


def _rule(entry: Rule) -> str:
    by = f"`{entry.mended_by}`" if entry.mended_by else ""
    cells = [f"`{entry.name}` ({entry.severity.value})", entry.message, f"{entry.consequence} {entry.remedy}", by]
    return f"| {' | '.join(map(_cell, cells))} |"


def _operators() -> Iterator[str]:
    yield from ("", "## Operators", "")
    yield f"Each in a graph of its own, quantized as a build does it, {table().source}: `benchmarks/operators.py`."
    yield "HTP: it runs there. CPU: it falls to the CPU. refused: the compiler ends with an error for the whole model."
    yield f"Asked for: {'; '.join(_asked())}. A chip of another architecture is judged by the nearest."
    yield "Before `lint` looks here, it knows which operators a pass rewrites (LSTM, GRU, Erf in a GELU, ...)."
    yield from ("", f"| operator | {' | '.join(_COLUMNS)} |", f"|---|{'---|' * len(_COLUMNS)}")
    for case in sorted(table().cases, key=lambda case: case.op_type):
        cells = [_verdicts(case.verdicts.get(precision, ())) for precision in _COLUMNS.values()]
        yield f"| {_cell(_name(case))} | {' | '.join(cells)} |"


def _asked() -> Iterator[str]:
    """Each column, and the architectures that its precision was asked for."""
    for heading, precision in _COLUMNS.items():
        told = (verdict for case in table().cases for verdict in case.verdicts.get(precision, ()))
        yield f"{heading} on {' '.join(sorted({arch for verdict in told for arch in verdict.archs}))}"


def _name(case: Case) -> str:
    parts = [f"{name}={value}" for name, value in case.attributes.items()]
    parts += [f"rank {case.rank}"] if case.rank is not None else []
    parts += [f"input {case.computed} computed"] if case.computed is not None else []
    parts += [case.note] if case.note else []
    return f"{case.op_type} ({', '.join(parts)})" if parts else case.op_type


def _verdicts(told: Sequence[Verdict]) -> str:
    """One word where all architectures agree, else the architectures of each."""
    units: dict[str, list[str]] = {}
    for verdict in told:
        units.setdefault(verdict.unit, []).extend(verdict.archs)
    if len(units) <= 1:
        return next(iter(units), "not tried")
    return ", ".join(f"{unit} on {' '.join(sorted(archs))}" for unit, archs in units.items())


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
