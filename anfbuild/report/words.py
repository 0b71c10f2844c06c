"""Figures in words. A sentence names the source of its figure and says what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anfbuild.report.gates import gate_name, why

SOURCES = {
    "measured_device": "measured on the device",
    "measured_host": "measured on the building host",
    "compiled": "reported by the compiler",
    "emulated": "computed by the HTP emulator",
    "predicted": "predicted by the cost model",
    "cited": "cited",
    None: "",
}
"""The words for a group's `source`."""


_NO_TRUTH = (
    "The data has no ground truth: the float model's own answers are what is taken for right, so this says how far "
    "quantization changes them, and nothing of how good they are."
)


def figure(value: float | str | bool | None, unit: str = "") -> str:
    """`value` with four significant digits and its unit; a dash where it is null."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        value = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{value} {unit}".rstrip()


def interval(bounds: list[float] | None, unit: str = "") -> str:
    """`bounds` as "1.2 to 3.4 ms"; empty where they are null."""
    return "" if bounds is None else f"{figure(bounds[0])} to {figure(bounds[1], unit)}"


def counted(number: int | None, noun: str) -> str:
    """Such as "1 sample", "16 samples"."""
    return f"{figure(number)} {noun}" if number == 1 else f"{figure(number)} {noun}s"


def one_or_all(names: Sequence[str]) -> str:
    """The name that all have, or every one of them: "int8", "int8+a16w8"."""
    return names[0] if len(set(names)) == 1 else "+".join(names)


def verdict(results: Mapping[str, Any]) -> list[str]:
    """What the results mean, one sentence or two a subject: gates, latency, traffic, accuracy, agreement,
    placement, data."""
    return [
        gates_sentence(results),
        _latency(results),
        saving(results),
        _worst(results, "accuracy") + _accuracy(results),
        _worst(results, "agreement") + _agreement(results),
        _placement(results),
        f"Calibration: {results['calibration']['note']}",
    ]


def gates_sentence(results: Mapping[str, Any]) -> str:
    """How many gates hold, which are missed and which are not judged."""
    gates = results["gates"]
    if not gates:
        return "The recipe sets no gates."
    missed = [gate_text(gate) for gate in gates if gate["passed"] is False]
    open_ = [f"{gate_name(gate)} ({gate['reason']})" for gate in gates if gate["passed"] is None]
    held = len(gates) - len(missed) - len(open_)
    text = f"{held} of {len(gates)} gates {'holds' if held == 1 else 'hold'}."
    if missed:
        text += f" Missed: {'; '.join(missed)}."
    if open_:
        text += f" Not judged: {'; '.join(open_)}."
    return text


def gate_text(gate: Mapping[str, Any]) -> str:
    """Such as "latency_ms is 31.2 ms, at most 25 ms"."""
    suspects = "".join(f"; {suspect}" for suspect in gate.get("suspects", ()))
    return f"{gate_name(gate)} is {value_and_limit(gate)}{suspects}"


def value_and_limit(gate: Mapping[str, Any]) -> str:
    """Such as "31.2 ms, at most 25 ms"."""
    bound = "at least" if gate["direction"] == "min" else "at most"
    value = "not a finite number" if gate["value"] is None and gate["passed"] is not None else figure(gate["value"])
    return f"{value}, {bound} {figure(gate['limit'], gate['unit'])}"


def _worst(results: Mapping[str, Any], group: str) -> str:
    """Whose figures a group shows, of several components."""
    name = results[group].get("component")
    return "" if name is None else f"Of {counted(len(results['components']), 'component')} {name} is the worst: "


def _latency(results: Mapping[str, Any]) -> str:
    group, target = results["latency_ms"], results["target"]
    chip = target["name"] or target["soc"]
    one = "One inference of each component in turn" if "components" in results else "One inference"
    if group["total"] is None:
        return f"Latency on {chip} is not known: {why(results, '/latency_ms/total')}."
    total, mode = figure(group["total"], "ms"), results["performance_mode"]
    if group["source"] != "predicted":
        return f"{one} in mode {mode} takes {total} ({SOURCES[group['source']]})."
    text = f"{one} on {chip} in mode {mode} is predicted by the cost model to take {total}"
    if group["interval90"] is not None:
        text += f", {interval(group['interval90'], 'ms')} at 90 % confidence"
    if not group["calibrated"]:
        return f"{text}. No measurement of this chip stands behind the figure: it is not calibrated."
    return f"{text}. The cost model is fitted to measurements of this chip; no device ran this model."


def saving(results: Mapping[str, Any]) -> str:
    """What the execution blocks keep on chip."""
    group = results["traffic_model"]
    if group["saving"] is None:
        return f"What fusion saves of the DRAM traffic is not known: {why(results, '/traffic_model/saving')}."
    fused, unfused = (figure(group[key], "MB") for key in ("fused_mb", "unfused_mb"))
    text = (
        f"One inference, in {counted(len(group['blocks']), 'execution block')}, is predicted to move "
        f"{fused} to and from DRAM against {unfused} node by node: "
        f"{figure(100 * group['saving'])} % stays on chip"
    )
    spilled = f", {figure(group['spill_mb'], 'MB')} does not fit and is spilled" if group["spill_mb"] else ""
    doubt = "" if group["calibrated"] else "; take it for an order, it is not calibrated"
    return f"{text}{spilled}{doubt}."


def _accuracy(results: Mapping[str, Any]) -> str:
    group = results["accuracy"]
    if group["quantized"] is None:
        return f"Accuracy is not known: {why(results, '/accuracy/quantized')}."
    samples = group["samples"]
    text = f"{group['metric']} is {figure(group['quantized'])} quantized"
    if group["reference"] != "float":
        text += f" and {figure(group['float'])} in float"
    text += f" on {counted(samples['quantized'], 'sample')}, {SOURCES[group['source']]}"
    if group["drop_abs"] is not None:
        change = "costs" if group["drop_abs"] > 0 else "gains" if group["drop_abs"] < 0 else "changes"
        text += f"; quantization {change} {figure(abs(group['drop_abs']))}"
        if group["interval95"] is not None:
            low, high = group["interval95"]
            text += f" (cost {interval([low, high])} at 95 % confidence)"
            if low <= 0 <= high:
                text += ", which these samples cannot tell from none"
    if group["emulated"] is not None:
        text += f". On the HTP emulator it is {figure(group['emulated'])} on {counted(samples['emulated'], 'sample')}"
    return f"{text}. {_NO_TRUTH}" if group["reference"] == "float" else f"{text}."


def _agreement(results: Mapping[str, Any]) -> str:
    group = results["agreement"]
    if group["rms_lsb"] is None:
        return f"Whether the HTP computes what the CPU does is not known: {why(results, '/agreement/rms_lsb')}."
    text = f"Output {group['tensor']} differs by {figure(group['rms_lsb'], 'LSB')} rms between {group['between']}"
    noise = f", {figure(group['sqnr_db'], 'dB')}" if group["sqnr_db"] is not None else ""
    return f"{text} (at most {figure(group['max_lsb'], 'LSB')}{noise})."


def _placement(results: Mapping[str, Any]) -> str:
    group = results["placement"]
    if group["htp"] is None:
        return f"Placement is not known: {why(results, '/placement/htp')}."
    text = f"{group['htp']} of {figure(group['nodes'])} nodes run on the HTP"
    if (macs := group["share"]["macs"]["htp"]) is not None:
        text += f" with {figure(100 * macs)} % of the multiply-accumulates"
    if group["partitions"] is not None:
        text += f", in {counted(group['partitions'], 'partition')}"
    text += f", {SOURCES[group['source']]}"
    if (time := group["share"]["time"]["htp"]) is not None:
        text += f"; {figure(100 * time)} % of the time there, {SOURCES[group['time_source']]}"
    return f"{text}."
