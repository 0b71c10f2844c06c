"""Gates: limits on figures of the results. A gate whose figure cannot be had is neither held nor missed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from anfbuild.errors import RecipeError, StepError, did_you_mean


@dataclass(frozen=True)
class Gate:
    """Which figure of the results a gate limits."""

    pointer: str
    """JSON pointer into the results. The first part is the group, whose `source` is the figure's."""
    unit: str
    about: str


GATES: dict[str, Gate] = {
    "accuracy": Gate("/accuracy/quantized", "", "the metric of the quantized model"),
    "accuracy_drop": Gate("/accuracy/drop_abs", "", "what quantization costs on the same samples; positive is worse"),
    "agreement_lsb": Gate("/agreement/rms_lsb", "LSB", "root mean square difference between emulator and CPU QDQ"),
    "cpu_nodes": Gate("/placement/cpu", "nodes", "nodes left to the CPU"),
    "htp_macs": Gate("/placement/share/macs/htp", "", "share of the multiply-accumulates that runs on the HTP, 0..1"),
    "latency_ms": Gate("/latency_ms/total", "ms", "time of one inference"),
    "memory_mb": Gate("/memory_mb/peak", "MB", "memory that the process takes at its peak, 10^6 bytes"),
    "partitions": Gate("/placement/partitions", "", "parts that the graph falls into on the HTP"),
    "spill_mb": Gate("/traffic/spill_mb", "MB", "bytes spilled from VTCM to DRAM in one inference, 10^6"),
}


class Verdict(TypedDict):
    """One limit and what became of it."""

    name: str
    direction: str
    """`min`: the value must not be below the limit; `max`: not above it."""
    limit: float
    unit: str
    value: float | None
    passed: bool | None
    """None: not judged, for `reason`."""
    source: str | None
    reason: NotRequired[str]
    suspects: NotRequired[list[str]]
    """Of a limit that is missed: what to look at first."""


def gate_name(gate: Mapping[str, Any]) -> str:
    """How a verdict is told: `latency_ms`, or `landmark: latency_ms` where it is about one of several components."""
    return f"{gate['component']}: {gate['name']}" if "component" in gate else str(gate["name"])


def check(gates: Mapping[str, Mapping[str, float | None]]) -> None:
    """Refuse (RecipeError) unknown gates and limits that mean nothing, before anything is built.

    A direction that is None is not asked for. A gate needs one direction at least.
    """
    for name, limits in gates.items():
        where = f"gates.{name}"
        if name not in GATES:
            raise RecipeError(
                f"there is no gate {name!r}",
                where=where,
                choices=GATES,
                remedy=f"{did_you_mean(name, GATES)}Use one of the gates above.",
            )
        if not isinstance(limits, Mapping):
            raise RecipeError(f"{limits!r} is not a limit", where=where, remedy=_example(name))
        for direction, limit in limits.items():
            if direction not in ("min", "max"):
                raise RecipeError(f"{direction!r} is not a direction", where=where, choices=("min", "max"))
            if limit is not None and not _is_number(limit):
                raise RecipeError(f"{direction}: {limit!r} is not a number", where=where, remedy=_example(name))
        low, high = limits.get("min"), limits.get("max")
        if low is None and high is None:
            raise RecipeError("has no limit", where=where, choices=("min", "max"), remedy=_example(name))
        if low is not None and high is not None and low > high:
            raise RecipeError(f"no value is at least {low:g} and at most {high:g}", where=where)


def judge(results: Mapping[str, Any], gates: Mapping[str, Mapping[str, float | None]]) -> list[Verdict]:
    """What became of every limit, sorted by gate, `min` before `max`.

    `results` is a document as `results.schema.json` says; NaN in it misses every limit, null is not judged. Raises
    RecipeError as `check` does, StepError for a figure that is no number.
    """
    check(gates)
    return [
        _verdict(results, name, direction, limit)
        for name in sorted(gates)
        for direction in ("min", "max")
        if (limit := gates[name].get(direction)) is not None
    ]


def _verdict(results: Mapping[str, Any], name: str, direction: str, limit: float) -> Verdict:
    gate = GATES[name]
    value = at(results, gate.pointer)
    group = gate.pointer.split("/")[1]
    source = at(results, f"/{group}/source")
    verdict = Verdict(
        name=name, direction=direction, limit=limit, unit=gate.unit, value=value, passed=None, source=source
    )
    if value is None:
        verdict["reason"] = why(results, gate.pointer) or f"{gate.pointer} is not in the results"
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise StepError(f"{gate.pointer} is {value!r}, which is not a number", where="results.json")
    else:
        # Comparisons with NaN are false: it passes no limit.
        verdict["passed"] = value >= limit if direction == "min" else value <= limit
        suspects = at(results, f"/{group}/suspects")
        if suspects and not verdict["passed"]:
            verdict["suspects"] = list(suspects)
    return verdict


def at(results: Mapping[str, Any], pointer: str) -> Any:
    """The value at a JSON pointer, None where there is none."""
    value: Any = results
    for key in pointer.split("/")[1:]:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def why(results: Mapping[str, Any], pointer: str) -> str | None:
    """Why the value at `pointer` is null."""
    reason: str | None = results.get("reasons", {}).get(pointer)
    return reason


def _is_number(limit: object) -> bool:
    return isinstance(limit, int | float) and not isinstance(limit, bool) and math.isfinite(limit)


def _example(name: str) -> str:
    return f"Write a number, such as {name}: {{max: 1.0}} or {{min: 0.5}}."
