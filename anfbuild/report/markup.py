"""The parts that report.html is made of: its style, tables, and cells that say why they are empty."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from anfbuild.report.words import SOURCES, figure, interval

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #59636e; --line: #d1d9e0; --paper: #fff; --good: #1a7f37;
  --bad: #cf222e; --bar: #0969da; --bar2: #bf8700; --bar3: #8250df; --bar4: #59636e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; --paper: #0d1117;
  --good: #3fb950; --bad: #f85149; --bar: #4493f8; --bar2: #d29922; --bar3: #ab7df8; --bar4: #9198a1; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { margin: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; border-bottom: 1px solid var(--line); }
p.sub, .source, caption { color: var(--soft); } .source, caption { font-size: .85rem; text-align: left; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--line);
  overflow-wrap: anywhere; }
td.n, th.n { text-align: right; }
.held { color: var(--good); } .missed { color: var(--bad); font-weight: 600; }
.bar { display: flex; height: 1.1rem; margin: .5rem 0; } .bar span { min-width: 1px; }
.htp { background: var(--bar); } .gpu { background: var(--bar2); } .cpu { background: var(--bar3); }
.transfer, .preprocess { background: var(--bar4); } .preprocess { opacity: .6; }
.key { display: inline-block; width: .7rem; height: .7rem; margin-right: .4rem; }
code { font-size: .85rem; } details { margin: .5rem 0; } summary { cursor: pointer; }
@media print { body { margin: 0; max-width: none; } h2, tr { break-inside: avoid; break-after: auto; }
  .bar span, .key { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def section(title: str, content: str) -> str:
    """A section of the page, of a title and a content that are HTML already."""
    return f"<section><h2>{title}</h2>{content}</section>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of cells that are HTML already; `numbers` are the columns set to the right."""

    def line(tag: str, cells: Sequence[str]) -> str:
        marks = [" class=n" if index in numbers else "" for index in range(len(cells))]
        return (
            "<tr>" + "".join(f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, cells, strict=True)) + "</tr>"
        )

    return f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"


def source(group: Mapping[str, Any]) -> str:
    """Where the figures of a group come from, in words."""
    words = SOURCES[group["source"]]
    return f"<p class=source>{escape(words[0].upper() + words[1:])}.</p>" if words else ""


def unknown(results: Mapping[str, Any], name: str) -> str:
    """Why the whole group is missing, in place of a table that says it once a row; empty where it is not."""
    if results[name].get("source", "") is not None:
        return ""
    reasons = [reason for pointer, reason in results["reasons"].items() if pointer.startswith(f"/{name}/")]
    return "".join(f"<p>Not known: {escape(reason)}.</p>" for reason in dict.fromkeys(reasons))


def cell(results: Mapping[str, Any], pointer: str, value: Any, unit: str = "") -> str:
    """The value, or the reason why there is none."""
    if value is None:
        return f"<span class=source>{escape(results['reasons'][pointer])}</span>"
    if isinstance(value, list):
        return escape(interval(value, unit))
    return escape(figure(value, unit))
