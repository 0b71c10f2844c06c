"""report.html: the results as one page that needs nothing else: no network, no script, light or dark, printable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from anfbuild.report.components import Component
from anfbuild.report.gates import gate_name
from anfbuild.report.results import validate
from anfbuild.report.words import SOURCES, figure, interval, saving, value_and_limit, verdict

_STYLE = """
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
_PARTS = ("htp", "gpu", "cpu", "transfer", "preprocess")


def html(
    results: Mapping[str, Any],
    *,
    placement: Sequence[Mapping[str, Any]] = (),
    steps: Sequence[Mapping[str, str]] = (),
    notes: Sequence[str] = (),
    components: Mapping[str, Component] | None = None,
) -> str:
    """The page for `results`, a document as `results.schema.json` says.

    `placement`: a row a node, the columns of placement.csv. `steps`: step, key, about (what it did).
    `notes`: sentences on how the figures came about. `components`: those of which `results` are the whole.
    Every string is escaped. Raises StepError as `validate` does.
    """
    validate(results)
    target = results["target"]
    built = (
        f"{results['quantization']} on {target['name'] or target['soc']} ({target['soc']}, Hexagon {target['arch']}, "
        f"{figure(target['vtcm_mb'])} MB VTCM), backend {results['backend']}, mode {results['performance_mode']}"
    )
    sections = [
        ("What it comes to", "".join(f"<p>{escape(sentence)}</p>" for sentence in verdict(results))),
        ("Gates", _gates(results["gates"])),
        *_groups(results, placement),
        ("Package", _figures(results, "package")),
        ("Versions", _versions(results)),
        *((f"Component {escape(name)}", _component(component)) for name, component in (components or {}).items()),
        ("How it was built", _steps(steps, notes)),
    ]
    body = "\n".join(f"<section><h2>{title}</h2>{content}</section>" for title, content in sections if content)
    name = escape(results["recipe"])
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head>\n<body><h1>{name}</h1><p class=sub>{escape(built)}</p>\n"
        f"{body}\n</body></html>\n"
    )


def _groups(results: Mapping[str, Any], placement: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The sections of the figures."""
    return [
        ("Accuracy", _whose(results, "accuracy") + (_unknown(results, "accuracy") or _accuracy(results))),
        (
            "Agreement of HTP and CPU",
            _whose(results, "agreement") + (_unknown(results, "agreement") or _figures(results, "agreement")),
        ),
        ("Placement", _unknown(results, "placement") or _placement(results, placement)),
        ("Latency", _unknown(results, "latency_ms") or _latency(results)),
        ("DRAM traffic of one inference", _unknown(results, "traffic") or _figures(results, "traffic")),
        ("Execution blocks", _unknown(results, "traffic_model") or _blocks(results)),
        ("Memory", _unknown(results, "memory_mb") or _memory(results)),
    ]


def _whose(results: Mapping[str, Any], group: str) -> str:
    name = results[group].get("component")
    return "" if name is None else f"<p class=source>Of the component that loses most, {escape(name)}.</p>"


def _component(component: Component) -> str:
    results = component.results
    about = f"<p>{escape(results['quantization'])}. {escape(results['calibration']['note'])}</p>"
    groups = "".join(f"<h3>{title}</h3>{content}" for title, content in _groups(results, component.placement))
    return about + groups + _steps((), component.notes)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table of cells that are HTML already; `numbers` are the columns set to the right."""

    def line(tag: str, cells: Sequence[str]) -> str:
        marks = [" class=n" if index in numbers else "" for index in range(len(cells))]
        return (
            "<tr>" + "".join(f"<{tag}{mark}>{cell}</{tag}>" for mark, cell in zip(marks, cells, strict=True)) + "</tr>"
        )

    return f"<table>{line('th', head)}{''.join(line('td', row) for row in rows)}</table>"


def _source(group: Mapping[str, Any]) -> str:
    words = SOURCES[group["source"]]
    return f"<p class=source>{escape(words[0].upper() + words[1:])}.</p>" if words else ""


def _unknown(results: Mapping[str, Any], name: str) -> str:
    """Why the whole group is missing, in place of a table that says it once a row; empty where it is not."""
    if results[name].get("source", "") is not None:
        return ""
    reasons = [reason for pointer, reason in results["reasons"].items() if pointer.startswith(f"/{name}/")]
    return "".join(f"<p>Not known: {escape(reason)}.</p>" for reason in dict.fromkeys(reasons))


def _cell(results: Mapping[str, Any], pointer: str, value: Any, unit: str = "") -> str:
    """The value, or the reason why there is none."""
    if value is None:
        return f"<span class=source>{escape(results['reasons'][pointer])}</span>"
    if isinstance(value, list):
        return escape(interval(value, unit))
    return escape(figure(value, unit))


_LABELS = {
    "between": ("between", ""),
    "tensor": ("output", ""),
    "sqnr_db": ("signal to noise", "dB"),
    "rms_lsb": ("root mean square difference", "LSB"),
    "max_lsb": ("largest difference", "LSB"),
    "dram_read_mb": ("read", "MB"),
    "dram_write_mb": ("written", "MB"),
    "spill_mb": ("of it spilled from VTCM", "MB"),
    "fill_mb": ("of it filled back to VTCM", "MB"),
    "bytes": ("size", "bytes"),
    "sha256": ("SHA-256", ""),
}


def _figures(results: Mapping[str, Any], name: str) -> str:
    group = results[name]
    rows = [
        (escape(label), _cell(results, f"/{name}/{key}", group[key], unit))
        for key, (label, unit) in _LABELS.items()
        if key in group
    ]
    return _table(("figure", "value"), rows) + (_source(group) if "source" in group else "")


_BLOCK = {
    "nodes": "nodes",
    "weights_mb": "weights, MB",
    "unfused_mb": "node by node, MB",
    "fused_mb": "fused, MB",
    "spill_mb": "of it spilled, MB",
    "vtcm_mb": "most on chip, MB",
}
_MOST_BLOCKS = 40


def _blocks(results: Mapping[str, Any]) -> str:
    group = results["traffic_model"]
    rows = [
        (
            f"<code>{escape(block['first'])}</code> to <code>{escape(block['last'])}</code>",
            *(escape(figure(block[key])) for key in _BLOCK),
        )
        for block in group["blocks"] or ()
    ]
    rest = f"<p class=source>And {len(rows) - _MOST_BLOCKS} more.</p>" if len(rows) > _MOST_BLOCKS else ""
    table = _table(("block", *_BLOCK.values()), rows[:_MOST_BLOCKS], range(1, len(_BLOCK) + 1)) if rows else ""
    return f"<p>{escape(saving(results))}</p>{table}{rest}{_source(group)}"


def _memory(results: Mapping[str, Any]) -> str:
    group = results["memory_mb"]
    names = {
        "weights": "weights",
        "spill": "room for spills",
        "io": "inputs and outputs",
        "peak": "the process at its peak",
    }
    rows = [(name, _cell(results, f"/memory_mb/{key}", group[key], "MB")) for key, name in names.items()]
    suspects = "".join(f"<li>{escape(suspect)}</li>" for suspect in group["suspects"] or ())
    longest = f"<p>What holds most for longest, and outputs that may be cut:</p><ul>{suspects}</ul>" if suspects else ""
    return _table(("part", "size"), rows) + longest + _source(group)


def _gates(gates: Sequence[Mapping[str, Any]]) -> str:
    words = {True: "<span class=held>holds</span>", False: "<span class=missed>missed</span>", None: "not judged"}
    rows = [
        (
            escape(gate_name(gate)),
            words[gate["passed"]],
            escape(gate["reason"] if gate["passed"] is None else value_and_limit(gate)),
            escape(SOURCES[gate["source"]]),
        )
        for gate in gates
    ]
    return _table(("gate", "", "value and limit", "source"), rows) if rows else ""


def _accuracy(results: Mapping[str, Any]) -> str:
    group = results["accuracy"]
    rows = [
        (
            label,
            _cell(results, f"/accuracy/{key}", group[key]),
            _cell(results, f"/accuracy/samples/{key}", group["samples"][key]),
        )
        for key, label in (("float", "float"), ("quantized", "quantized, CPU"), ("emulated", "quantized, HTP emulator"))
    ]
    direction = {True: "higher is better", False: "lower is better", None: ""}[group["higher_is_better"]]
    metric = escape(f"{figure(group['metric'])} ({direction})" if direction else "metric")
    drops = [
        (label, _cell(results, f"/accuracy/{key}", group[key]))
        for key, label in (
            ("drop_abs", "drop, float to quantized"),
            ("drop_rel", "drop as a share of float"),
            ("interval95", "drop at 95 % confidence"),
        )
    ]
    source = _source(group)
    if group["emulated"] is not None:
        source += f"<p class=source>Of the HTP emulator: {escape(SOURCES[group['emulated_source']])}.</p>"
    return _table(("model", metric, "samples"), rows, (1, 2)) + _table(("", ""), drops) + source


def _placement(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    group = results["placement"]
    units = [
        (
            unit.upper(),
            _cell(results, f"/placement/{unit}", group[unit]),
            *(_cell(results, f"/placement/share/{of}/{unit}", group["share"][of][unit]) for of in ("macs", "time")),
        )
        for unit in ("htp", "gpu", "cpu")
    ]
    units.append(("partitions on the HTP", _cell(results, "/placement/partitions", group["partitions"]), "", ""))
    head = ("unit", "nodes", "share of multiply-accumulates", "share of time")
    text = _table(head, units, (1, 2, 3)) + _source(group)
    if group["time_source"] is not None:
        text += f"<p class=source>Of the time: {escape(SOURCES[group['time_source']])}.</p>"
    elsewhere = [row for row in rows if row["unit"] not in ("HTP", "folded", "removed")]
    if elsewhere:
        text += f"<h3>Not on the HTP</h3>{_ENDS}{_nodes(elsewhere)}"
    if rows:
        kinds = Counter((row["op_type"], row["unit"]) for row in rows)
        counted = [(escape(op), escape(unit), str(count)) for (op, unit), count in sorted(kinds.items())]
        text += (
            f"<details><summary>By operator</summary>{_table(('operator', 'unit', 'nodes'), counted, (2,))}</details>"
        )
        text += f"<details><summary>All {len(rows)} nodes</summary>{_nodes(rows)}</details>"
    return text


_ENDS = (
    "<p>QuantizeLinear and DequantizeLinear at the model's ends turn its float inputs and outputs into integers. They "
    "run on the CPU by design and are not counted above.</p>"
)


def _nodes(rows: Sequence[Mapping[str, Any]]) -> str:
    cells = [
        (
            f"<code>{escape(row['node'])}</code>",
            escape(row["op_type"]),
            escape(row["unit"]),
            escape(figure(row["macs"])),
            escape(figure(row["ms"] or None)),
            escape(row["reason"] or "") + _beneath(row["compiler"]),
        )
        for row in rows
    ]
    return _table(("node", "operator", "unit", "multiply-accumulates", "ms, predicted", "reason"), cells, (3, 4))


def _beneath(text: str) -> str:
    """The compiler's own words, below ours."""
    return f"<div class=source>compiler: {escape(text)}</div>" if text else ""


def _latency(results: Mapping[str, Any]) -> str:
    group = results["latency_ms"]
    rows = [
        ("total", _cell(results, "/latency_ms/total", group["total"], "ms")),
        ("at 90 % confidence", _cell(results, "/latency_ms/interval90", group["interval90"], "ms")),
    ]
    rows += [
        (f'<span class="key {part}"></span>{part}', _cell(results, f"/latency_ms/{part}", group[part], "ms"))
        for part in _PARTS
    ]
    parts = {part: group[part] for part in _PARTS if group[part]}
    whole = sum(parts.values())
    bar = "".join(
        f'<span class="{part}" style="width:{100 * value / whole:.2f}%" title="{part} {figure(value, "ms")}"></span>'
        for part, value in parts.items()
    )
    return (f"<div class=bar>{bar}</div>" if bar else "") + _table(("part", "time"), rows) + _source(group)


def _versions(results: Mapping[str, Any]) -> str:
    rows = [
        (
            escape(version["part"]),
            _cell(results, f"/versions/{index}/required", version["required"]),
            _cell(results, f"/versions/{index}/found", version["found"]),
            _cell(results, f"/versions/{index}/verified", version["verified"]),
        )
        for index, version in enumerate(results["versions"])
    ]
    return _table(("part", "required", "found", "verified"), rows) if rows else ""


def _steps(steps: Sequence[Mapping[str, str]], notes: Sequence[str]) -> str:
    rows = [
        (escape(step["step"]), escape(step.get("about", "")), f"<code>{escape(step.get('key', ''))}</code>")
        for step in steps
    ]
    text = _table(("step", "what it did", "key"), rows) if rows else ""
    return text + (f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>" if notes else "")
