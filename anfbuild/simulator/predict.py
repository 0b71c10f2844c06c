"""Latency of a model on a chip, before any device is at hand."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import onnx

from anfbuild.errors import StepError
from anfbuild.qnn.features import Features
from anfbuild.simulator.blocks import TrafficModel, traffic_model
from anfbuild.simulator.compiled import latency_ms
from anfbuild.simulator.energy import Activity
from anfbuild.simulator.forecast import Forecast, forecast
from anfbuild.simulator.memory import Memory, memory
from anfbuild.simulator.modes import Mode, mode_of
from anfbuild.simulator.prior import NEVER_FITTED
from anfbuild.simulator.prior import RESIDUAL90 as COMPILED90
from anfbuild.simulator.rates import Rates, read_rates
from anfbuild.simulator.roofline import RESIDUAL90, NodeCost, nearest_precision, node_cost
from anfbuild.simulator.tiling import flow
from anfbuild.simulator.work import Work, workload

_REASONS = {
    "/latency_ms/transfer": "part of total: the rates are fitted to whole inferences, copies in and out included",
    "/latency_ms/preprocess": "runs on the device's CPU, for which the cost model has no rates",
    "/latency_ms/gpu": "the cost model knows the HTP only",
    "/latency_ms/cpu": "the cost model knows the HTP only",
}


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A predicted latency and what it is made of."""

    total_ms: float
    """Milliseconds of one inference, the whole model on the HTP, in the performance mode asked for."""
    interval90: tuple[float, float]
    """Milliseconds between which 90 of 100 measured latencies should lie."""
    calibrated: bool
    """True where chip, precision, operators and mode are all among what was fitted or cited."""
    nodes: tuple[NodeCost, ...]
    """Cost of every node in burst, the dearest first."""
    unlisted: tuple[str, ...]
    """Operators without a rule of their own, costed as movement of their bytes."""
    notes: tuple[str, ...]
    """Why it is not calibrated, and what else bends the figure."""
    forecast: Forecast | None = None
    """Energy and heat; None where the compiler's DRAM traffic is not known."""
    traffic_model: TrafficModel | None = None
    """The execution blocks and their DRAM bytes, as the model of blocks has them."""
    memory: Memory | None = None

    def to_json(self, top: int | None = None) -> dict[str, Any]:
        """Plain values for results.json, with the `top` dearest nodes, or all. Times in ms, rounded to 1 ns."""
        return {
            "latency_ms": {
                "total": _ms(self.total_ms),
                "htp": _ms(self.total_ms),
                "transfer": None,
                "preprocess": None,
                "gpu": None,
                "cpu": None,
                "interval90": [_ms(bound) for bound in self.interval90],
                "source": "predicted",
                "calibrated": self.calibrated,
            },
            "traffic_model": None if self.traffic_model is None else self.traffic_model.to_json(),
            "memory_mb": None if self.memory is None else self.memory.to_json(),
            "nodes": [
                {
                    "name": cost.work.name,
                    "op_type": cost.work.op_type,
                    "macs": cost.work.macs,
                    "bytes": cost.work.weight_bytes + cost.work.activation_bytes,
                    "ms": _ms(cost.ms),
                    "bound": cost.bound,
                }
                for cost in self.nodes[:top]
            ],
            "unlisted": list(self.unlisted),
            "notes": list(self.notes),
            "reasons": {
                **_REASONS,
                **(self.memory.reasons() if self.memory else {}),
                **(self.traffic_model.reasons() if self.traffic_model else {}),
            },
        }


def predict(
    model: onnx.ModelProto,
    target: Mapping[str, object],
    performance_mode: str,
    traffic: Mapping[str, float | None] | None = None,
    features: Features | None = None,
    off_htp: int = 0,
) -> Prediction:
    """Predict the latency of a clean float or QDQ model (static shapes, every node named) on the HTP.

    `target` is a recipe's target: `vtcm_mb` and `rates` are read (see `read_rates`). `traffic` is the compiler's count,
    `dram_read_mb` and `dram_write_mb` in MB: an inference cannot take less than it takes to stream that. With the
    `features` of the model's compile, and costs for them in the target, they tell the latency, and the roofline only
    how it is shared between nodes. `off_htp` counts the nodes that the compiler left to the CPU, for which there are no
    costs: with any, the figure is not calibrated.

    Raises RecipeError for a bad target or an unknown mode, StepError for a model whose shapes are not static, whose
    nodes are not named, or whose figures are too large to be real.
    """
    mode = mode_of(performance_mode)
    rates = read_rates(target)
    works = workload(model)
    costs = [node_cost(work, rates) for work in works]
    burst = rates.fixed_ms + math.fsum(cost.ms for cost in costs)
    streamed = rates.fixed_ms + _streamed_bytes(traffic) / rates.bytes_per_ms
    compiled = latency_ms(features, rates.compiled) if features is not None and rates.compiled else None
    ms = (max(burst, streamed) if compiled is None else compiled) * mode.likely
    if not math.isfinite(ms):
        raise StepError("the predicted latency is not finite", where="target.rates", remedy="Check the target's rates.")
    unlisted = sorted({work.op_type for work in works if not work.known})
    precisions = sorted({work.precision for work in works if work.precision})
    doubts = _doubts(rates, mode, precisions, unlisted)
    if compiled is None and rates.compiled:
        doubts.append("a roofline in place of the costs of compiled work: there was no compile to cost")
        if rates.estimate:
            doubts.append("the roofline's figures are another chip's")
    if compiled is not None and features is not None and features.unlisted:
        doubts.append(_not_costed(features.unlisted))
    if off_htp:
        doubts.append(f"{off_htp} node(s) do not run on the HTP and are not costed")
    if compiled is None and streamed > burst:
        doubts.append("bound by the compiled DRAM traffic, which the fit did not see")
    low, high = _residual(precisions, RESIDUAL90 if compiled is None else COMPILED90)
    if not rates.fitted or (compiled is None and rates.estimate):
        low, high = _widened(low, high)
    dram = _dram_bytes(features, traffic)
    stages = flow(model)
    blocks = traffic_model(stages, rates.vtcm_bytes, precisions)
    return Prediction(
        total_ms=ms,
        interval90=(ms * low * mode.low / mode.likely, ms * high * mode.high / mode.likely),
        calibrated=not doubts,
        nodes=tuple(sorted(costs, key=lambda cost: (-cost.ms, cost.work.name))),
        unlisted=tuple(unlisted),
        notes=tuple(doubts),
        forecast=None if dram is None else forecast(_activity(works, dram), ms, performance_mode),
        traffic_model=blocks,
        memory=memory(stages, _spilled_bytes(blocks, traffic), features, str(target.get("soc"))),
    )


def _spilled_bytes(blocks: TrafficModel, traffic: Mapping[str, float | None] | None) -> int:
    """The compiler's count where it has one."""
    counted = (traffic or {}).get("spill_mb")
    return blocks.spilled if counted is None else round(counted * 1e6)


def _widened(low: float, high: float) -> tuple[float, float]:
    """The interval on a chip whose costs are another one's: two errors that do not hang together, so that their
    logarithms add up as squares do."""
    other = math.log(NEVER_FITTED)
    return math.exp(-math.hypot(math.log(low), other)), math.exp(math.hypot(math.log(high), other))


def _not_costed(unlisted: Mapping[str, int], most: int = 3) -> str:
    count = sum(unlisted.values())
    return f"{count} operations of the run list are not known and not costed: {', '.join([*unlisted][:most])}"


def _dram_bytes(features: Features | None, traffic: Mapping[str, float | None] | None) -> float | None:
    """What the compiler counted of one inference."""
    if features is not None:
        return float(features.dram_read + features.dram_write)
    return _streamed_bytes(traffic) or None


def _activity(works: Sequence[Work], dram_bytes: float) -> Activity:
    macs: dict[str, float] = {}
    for work in works:
        if work.macs:
            precision = nearest_precision(work.precision or "float")
            macs[precision] = macs.get(precision, 0.0) + work.macs
    return Activity(macs, dram_bytes, on_chip_bytes=math.fsum(work.activation_bytes for work in works))


def _streamed_bytes(traffic: Mapping[str, float | None] | None) -> float:
    return sum((traffic.get(key) or 0.0) for key in ("dram_read_mb", "dram_write_mb")) * 1e6 if traffic else 0.0


def _doubts(rates: Rates, mode: Mode, precisions: Sequence[str], unlisted: Sequence[str]) -> list[str]:
    doubts = []
    strange = [precision for precision in precisions if precision not in rates.fitted]
    if strange:
        doubts.append(f"no measurement of {', '.join(strange)} went into this chip's rates")
    if not precisions:
        doubts.append("no matrix product in the model: the fit saw none like it")
    if unlisted:
        doubts.append(f"no rule for {', '.join(unlisted)}: costed as movement of bytes")
    if not mode.cited:
        doubts.append(f"{mode.name} over sustained_high_performance is a language model's ratio on another chip")
    return doubts


def _residual(precisions: Sequence[str], intervals: Mapping[str, tuple[float, float]]) -> tuple[float, float]:
    """The widest of the precisions' intervals; of all intervals where one of them was never measured."""
    measured = [intervals[precision] for precision in precisions if precision in intervals]
    if not measured or len(measured) < len(precisions):
        measured = list(intervals.values())
    return min(low for low, _ in measured), max(high for _, high in measured)


def _ms(value: float) -> float:
    return round(value, 6)
