"""Memory that a model takes on the HTP: its weights, room for spills, inputs and outputs, and the peak of the process.

    peak = process + weights × copies + entries of the compiled run list × KB an entry

Three constants a chip, fitted to the peak memory of the process in public measurements of nine chips (Qualcomm AI Hub
Models 0.65.0, `perf.yaml`, BSD-3-Clause); `benchmarks/memory.py` prints them and their error, families of models left
out in turn. On other chips that figure is a few MB whatever the model (Linux boards, Windows): it leaves out what lies
with the HTP, so that they were not fitted. No public figure says how much a chip gives to one model: there is no limit
but the recipe's gate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from anfbuild.qnn.features import Features
from anfbuild.simulator.runs import Lives
from anfbuild.simulator.tiling import Flow

CONSTANTS: Mapping[str, tuple[float, float, float]] = {
    "qcm6690": (15.41, 1.69, 15.52),
    "sa7255p": (26.33, 0.23, 7.43),
    "sa8295p": (23.31, 0.3, 6.47),
    "sa8775p": (23.76, 0.07, 11.34),
    "sm7750": (19.04, 1.28, 9.24),
    "sm8450": (41.91, 0.88, 7.56),
    "sm8650": (33.85, 0.96, 9.68),
    "sm8750": (24.05, 0.34, 7.67),
    "sm8850": (23.92, 0.37, 7.97),
}
"""By chip: MB of the process, copies of the weights, KB an entry."""
ELSEWHERE = (25.91, 0.38, 8.45)
"""Of all these chips in one fit, for the others."""
_NO_PEAK = "the peak depends on what the compiler makes of the model, and there was no compile to count"
_TOP = 5


@dataclasses.dataclass(frozen=True)
class Memory:
    """Bytes (10^6 a MB in `to_json`)."""

    weights: int
    """Constants as they are stored."""
    spill: int
    """Room in DRAM for what does not fit on chip."""
    io: int
    """Inputs and outputs."""
    peak: float | None
    """Of the process; None without a compile."""
    calibrated: bool
    suspects: tuple[str, ...]
    """What to look at first where it is too much."""

    def to_json(self) -> dict[str, object]:
        """The group memory_mb of results.json."""
        return {
            "weights": self.weights / 1e6,
            "spill": self.spill / 1e6,
            "io": self.io / 1e6,
            "peak": None if self.peak is None else round(self.peak / 1e6, 3),
            "suspects": list(self.suspects),
            "source": "predicted",
            "calibrated": self.calibrated,
        }

    def reasons(self) -> dict[str, str]:
        """Why the peak is missing, by its JSON pointer."""
        return {} if self.peak is not None else {"/memory_mb/peak": _NO_PEAK}


def memory(flow: Flow, spill: int, features: Features | None, chip: str | None) -> Memory:
    """The memory of a model with that many bytes spilled. `features` are those of its compile; `chip` is the target's
    name, which says whether the peak is calibrated."""
    weights = flow.constant_bytes
    peak = None if features is None else peak_mb(weights / 1e6, features.entries, chip) * 1e6
    ends = dict.fromkeys((*flow.inputs, *flow.outputs))
    return Memory(
        weights=weights,
        spill=spill,
        io=sum(flow.values[name].bytes for name in ends),
        peak=peak,
        calibrated=peak is not None and chip in CONSTANTS,
        suspects=(*long_lived(flow), *heads(flow)),
    )


def peak_mb(weights_mb: float, count: int, chip: str | None) -> float:
    """Peak of the process (MB) with so many MB of weights and so many entries in the compiled run list."""
    process, copies, entry_kb = CONSTANTS.get(chip or "", ELSEWHERE)
    return process + copies * weights_mb + entry_kb * count / 1e3


def long_lived(flow: Flow) -> list[str]:
    """The values that take most memory for longest, in words: bytes times nodes between the first that makes it and
    the last that reads it. Those that the next node alone reads are left out."""
    lives = Lives(flow)
    held = {name: lives.last[name] - made for name, made in lives.made.items() if lives.last[name] - made > 1}
    names = sorted(held, key=lambda name: (-held[name] * flow.values[name].padded, name))[:_TOP]
    return [_life(flow, lives, name) for name in names]


def _life(flow: Flow, lives: Lives, name: str) -> str:
    value, made, last = flow.values[name], lives.made[name], lives.last[name]
    maker = f"node {flow.stages[made].name}" if made >= 0 else "the input"
    reader = f"node {flow.stages[last].name}" if last < len(flow.stages) else "the end"
    return f"{name}: {value.padded / 1e6:.2f} MB held from {maker} to {reader}, over {last - made} nodes"


def heads(flow: Flow) -> list[str]:
    """Of a model with several outputs, what each alone costs, in words: a head that nobody reads is memory for
    nothing. The dearest first."""
    if len(flow.outputs) < 2:
        return []
    makers = {name: index for index, stage in enumerate(flow.stages) for name in stage.makes}
    serves: list[set[str]] = [set() for _ in flow.stages]
    for name in flow.outputs:
        if name in makers:
            serves[makers[name]].add(name)
    for index in range(len(flow.stages) - 1, -1, -1):
        for name in flow.stages[index].reads:
            if name in makers:
                serves[makers[name]] |= serves[index]
    alone: dict[str, list[int]] = {}
    for index, served in enumerate(serves):
        if len(served) == 1:
            alone.setdefault(next(iter(served)), []).append(index)
    costs: Mapping[str, int] = {
        name: sum(flow.stages[index].weight_bytes + _made(flow, index) for index in stages)
        for name, stages in alone.items()
    }
    return [
        f"output {name}: {len(alone[name])} nodes and {costs[name] / 1e6:.2f} MB of weights and values serve it alone; "
        "leave it out of model.outputs if nobody reads it"
        for name in sorted(costs, key=lambda name: (-costs[name], name))[:_TOP]
    ]


def _made(flow: Flow, index: int) -> int:
    return sum(flow.values[name].padded for name in flow.stages[index].makes)
