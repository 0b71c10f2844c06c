"""report.html: the results as one page that needs nothing else: no network, no script, light or dark, printable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from anfbuild.report import markup
from anfbuild.report.components import Component
from anfbuild.report.gates import gate_name
from anfbuild.report.results import validate
from anfbuild.report.words import SOURCES, figure, saving, value_and_limit, verdict

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
    body = "\n".join(markup.section(title, content) for title, content in sections if content)
    name = escape(results["recipe"])
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{markup.STYLE}</style></head>\n<body><h1>{name}</h1><p class=sub>{escape(built)}</p>\n"
        f"{body}\n</body></html>\n"
    )


def _groups(results: Mapping[str, Any], placement: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The sections of the figures."""
    return [
        ("Accuracy", _whose(results, "accuracy") + (markup.unknown(results, "accuracy") or _accuracy(results))),
        (
            "Agreement of HTP and CPU",
            _whose(results, "agreement") + (markup.unknown(results, "agreement") or _figures(results, "agreement")),
        ),
        ("Placement", markup.unknown(results, "placement") or _placement(results, placement)),
        ("Latency", markup.unknown(results, "latency_ms") or _latency(results)),
        ("DRAM traffic of one inference", markup.unknown(results, "traffic") or _figures(results, "traffic")),
        ("Execution blocks", markup.unknown(results, "traffic_model") or _blocks(results)),
        ("Memory", markup.unknown(results, "memory_mb") or _memory(results)),
    ]


def _whose(results: Mapping[str, Any], group: str) -> str:
    name = results[group].get("component")
    return "" if name is None else f"<p class=source>Of the component that loses most, {escape(name)}.</p>"


def _component(component: Component) -> str:
    results = component.results
    about = f"<p>{escape(results['quantization'])}. {escape(results['calibration']['note'])}</p>"
    groups = "".join(f"<h3>{title}</h3>{content}" for title, content in _groups(results, component.placement))
    return about + groups + _steps((), component.notes)


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
        (escape(label), markup.cell(results, f"/{name}/{key}", group[key], unit))
        for key, (label, unit) in _LABELS.items()
        if key in group
    ]
    return markup.table(("figure", "value"), rows) + (markup.source(group) if "source" in group else "")


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
    table = markup.table(("block", *_BLOCK.values()), rows[:_MOST_BLOCKS], range(1, len(_BLOCK) + 1)) if rows else ""
    return f"<p>{escape(saving(results))}</p>{table}{rest}{markup.source(group)}"


def _memory(results: Mapping[str, Any]) -> str:
    group = results["memory_mb"]
    names = {
        "weights": "weights",
        "spill": "room for spills",
        "io": "inputs and outputs",
        "peak": "the process at its peak",
    }
    rows = [(name, markup.cell(results, f"/memory_mb/{key}", group[key], "MB")) for key, name in names.items()]
    suspects = "".join(f"<li>{escape(suspect)}</li>" for suspect in group["suspects"] or ())
    longest = f"<p>What holds most for longest, and outputs that may be cut:</p><ul>{suspects}</ul>" if suspects else ""
    return markup.table(("part", "size"), rows) + longest + markup.source(group)


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
    return markup.table(("gate", "", "value and limit", "source"), rows) if rows else ""


def _accuracy(results: Mapping[str, Any]) -> str:
    group = results["accuracy"]
    rows = [
        (
            label,
            markup.cell(results, f"/accuracy/{key}", group[key]),
            markup.cell(results, f"/accuracy/samples/{key}", group["samples"][key]),
        )
        for key, label in (("float", "float"), ("quantized", "quantized, CPU"), ("emulated", "quantized, HTP emulator"))
    ]
    direction = {True: "higher is better", False: "lower is better", None: ""}[group["higher_is_better"]]
    metric = escape(f"{figure(group['metric'])} ({direction})" if direction else "metric")
    drops = [
        (label, markup.cell(results, f"/accuracy/{key}", group[key]))
        for key, label in (
            ("drop_abs", "drop, float to quantized"),
            ("drop_rel", "drop as a share of float"),
            ("interval95", "drop at 95 % confidence"),
        )
    ]
    source = markup.source(group)
    if group["emulated"] is not None:
        source += f"<p class=source>Of the HTP emulator: {escape(SOURCES[group['emulated_source']])}.</p>"
    return markup.table(("model", metric, "samples"), rows, (1, 2)) + markup.table(("", ""), drops) + source


def _placement(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    group = results["placement"]
    units = [
        (
            unit.upper(),
            markup.cell(results, f"/placement/{unit}", group[unit]),
            *(
                markup.cell(results, f"/placement/share/{of}/{unit}", group["share"][of][unit])
                for of in ("macs", "time")
            ),
        )
        for unit in ("htp", "gpu", "cpu")
    ]
    units.append(("partitions on the HTP", markup.cell(results, "/placement/partitions", group["partitions"]), "", ""))
    head = ("unit", "nodes", "share of multiply-accumulates", "share of time")
    text = markup.table(head, units, (1, 2, 3)) + markup.source(group)
    if group["time_source"] is not None:
        text += f"<p class=source>Of the time: {escape(SOURCES[group['time_source']])}.</p>"
    elsewhere = [row for row in rows if row["unit"] not in ("HTP", "folded", "removed")]
    if elsewhere:
        text += f"<h3>Not on the HTP</h3>{_ENDS}{_nodes(elsewhere)}"
    if rows:
        kinds = Counter((row["op_type"], row["unit"]) for row in rows)
        counted = [(escape(op), escape(unit), str(count)) for (op, unit), count in sorted(kinds.items())]
        by_operator = markup.table(("operator", "unit", "nodes"), counted, (2,))
        text += f"<details><summary>By operator</summary>{by_operator}</details>"
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
    return markup.table(("node", "operator", "unit", "multiply-accumulates", "ms, predicted", "reason"), cells, (3, 4))


def _beneath(text: str) -> str:
    """The compiler's own words, below ours."""
    return f"<div class=source>compiler: {escape(text)}</div>" if text else ""


def _latency(results: Mapping[str, Any]) -> str:
    group = results["latency_ms"]
    rows = [
        ("total", markup.cell(results, "/latency_ms/total", group["total"], "ms")),
        ("at 90 % confidence", markup.cell(results, "/latency_ms/interval90", group["interval90"], "ms")),
    ]
    rows += [
        (f'<span class="key {part}"></span>{part}', markup.cell(results, f"/latency_ms/{part}", group[part], "ms"))
        for part in _PARTS
    ]
    parts = {part: group[part] for part in _PARTS if group[part]}
    whole = sum(parts.values())
    bar = "".join(
        f'<span class="{part}" style="width:{100 * value / whole:.2f}%" title="{part} {figure(value, "ms")}"></span>'
        for part, value in parts.items()
    )
    return (f"<div class=bar>{bar}</div>" if bar else "") + markup.table(("part", "time"), rows) + markup.source(group)


def _versions(results: Mapping[str, Any]) -> str:
    rows = [
        (
            escape(version["part"]),
            markup.cell(results, f"/versions/{index}/required", version["required"]),
            markup.cell(results, f"/versions/{index}/found", version["found"]),
            markup.cell(results, f"/versions/{index}/verified", version["verified"]),
        )
        for index, version in enumerate(results["versions"])
    ]
    return markup.table(("part", "required", "found", "verified"), rows) if rows else ""


def _steps(steps: Sequence[Mapping[str, str]], notes: Sequence[str]) -> str:
    rows = [
        (escape(step["step"]), escape(step.get("about", "")), f"<code>{escape(step.get('key', ''))}</code>")
        for step in steps
    ]
    text = markup.table(("step", "what it did", "key"), rows) if rows else ""
    return text + (f"<ul>{''.join(f'<li>{escape(note)}</li>' for note in notes)}</ul>" if notes else "")
