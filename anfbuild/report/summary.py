"""The few rows that a terminal shows after a build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anfbuild.report.gates import gate_name, why
from anfbuild.report.words import SOURCES, counted, figure, interval, value_and_limit

Row = tuple[str, str, str]


def summary(results: Mapping[str, Any]) -> list[Row]:
    """(label, value, source in words) of each group, then of each gate. Nothing is printed here."""
    return [
        _row(results, "accuracy", "/accuracy/quantized", _accuracy(results["accuracy"])),
        _row(results, "agreement", "/agreement/rms_lsb", _agreement(results["agreement"])),
        _row(results, "placement", "/placement/htp", _placement(results["placement"])),
        _row(results, "traffic", "/traffic/dram_read_mb", _traffic(results["traffic"])),
        _row(results, "latency", "/latency_ms/total", _latency(results["latency_ms"])),
        ("package", _package(results), ""),
        ("calibration", _calibration(results["calibration"]), ""),
        *((f"of it {name}", _component(own), "") for name, own in results.get("components", {}).items()),
        *(_gate(gate) for gate in results["gates"]),
    ]


def _row(results: Mapping[str, Any], label: str, pointer: str, value: str) -> Row:
    """The row, or why its main figure is missing."""
    reason = why(results, pointer)
    group = results[pointer.split("/")[1]]
    return (label, value, SOURCES[group["source"]]) if reason is None else (label, f"not known: {reason}", "")


def _accuracy(group: Mapping[str, Any]) -> str:
    beside = "no ground truth" if group["reference"] == "float" else f"float {figure(group['float'])}"
    text = f"{figure(group['metric'])} {figure(group['quantized'])} ({beside})"
    if group["drop_abs"] is not None:
        text += f", drop {figure(group['drop_abs'])}"
    return text + (f" [{interval(group['interval95'])}]" if group["interval95"] is not None else "")


def _agreement(group: Mapping[str, Any]) -> str:
    noise = f", {figure(group['sqnr_db'], 'dB')}" if group["sqnr_db"] is not None else ""
    return f"{figure(group['rms_lsb'], 'LSB')} rms, {figure(group['max_lsb'], 'LSB')} at most{noise}"


def _placement(group: Mapping[str, Any]) -> str:
    units = ", ".join(f"{unit.upper()} {group[unit]}" for unit in ("htp", "gpu", "cpu") if group[unit])
    return f"{units} of {figure(group['nodes'])} nodes, partitions {figure(group['partitions'])}"


def _traffic(group: Mapping[str, Any]) -> str:
    read, written = figure(group["dram_read_mb"]), figure(group["dram_write_mb"], "MB")
    return f"DRAM read {read}, written {written}, spilled {figure(group['spill_mb'], 'MB')}"


def _latency(group: Mapping[str, Any]) -> str:
    text = figure(group["total"], "ms")
    if group["interval90"] is not None:
        text += f" [{interval(group['interval90'])}]"
    return text if group["calibrated"] or group["source"] != "predicted" else f"{text}, not calibrated"


def _calibration(group: Mapping[str, Any]) -> str:
    text = f"{counted(group['samples'], 'sample')}, {group['estimator']}"
    if group["enough"]:
        return text
    return f"{text}; fewer than 300: rare content may be clipped, and the accuracy holds for this evaluation set only"


def _package(results: Mapping[str, Any]) -> str:
    size = results["package"]["bytes"]
    return f"{figure(size / 1e6, 'MB')}" if size is not None else f"none: {why(results, '/package/bytes')}"


def _component(own: Mapping[str, Any]) -> str:
    accuracy = own["accuracy"]
    scored = "not scored" if accuracy["quantized"] is None else _accuracy(accuracy)
    return f"{own['quantization']}, {scored}, {figure(own['latency_ms']['total'], 'ms')}"


def _gate(gate: Mapping[str, Any]) -> Row:
    label = f"gate {gate_name(gate)}"
    if gate["passed"] is None:
        return label, f"not judged: {gate['reason']}", ""
    outcome = "holds" if gate["passed"] else "MISSED"
    return label, f"{outcome}: {value_and_limit(gate)}", SOURCES[gate["source"]]
