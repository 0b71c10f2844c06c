"""Cuts a model into execution blocks: runs of nodes that are computed rows at a time, depth first, so that what lies
between them never leaves the on-chip memory (VTCM).

What goes to DRAM is found by computing the model tile by tile, depth first (`schedule`), and following what lies on
chip (`residency`). Where a block ends is found by dynamic programming: whatever crosses a cut lies on chip whole, so
that the cuts are where least does not fit (`cuts`); those that nothing is spilled across are none. A few constants,
here and in `tiling`, were fitted to what Qualcomm's compiler reported of a zoo of seeded networks in int8, and judged
by others: `benchmarks/traffic.py`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from anfbuild.simulator.residency import Moved, follow
from anfbuild.simulator.runs import Lives, Run
from anfbuild.simulator.schedule import tiles
from anfbuild.simulator.tiling import Flow

SHARE = 0.85
"""Share of the VTCM that values and weights get. Fitted."""
JUDGED = ("w8a8",)
"""The precisions that it was judged in."""
LONGEST = 64
"""Nodes of a block at most before blocks are joined, which bounds the search: a cut where all fits costs nothing."""


@dataclasses.dataclass(frozen=True)
class Spill:
    """A value that went to DRAM for want of room, and the bytes of it that did."""

    value: str
    written: int
    read: int


@dataclasses.dataclass(frozen=True)
class Block:
    """Nodes that run without leaving on-chip memory. All bytes are those of one inference, values in whole blocks of
    8 rows, 8 columns and 32 channels, as the HTP holds them."""

    nodes: tuple[str, ...]
    input_bytes: int
    """Of the values that it reads and does not make."""
    output_bytes: int
    """Of the values that are read behind it, or are outputs of the model."""
    weight_bytes: int
    fused_bytes: int
    """Read from and written to DRAM."""
    unfused_bytes: int
    """The same, were every node to read its operands from DRAM and write its result there."""
    vtcm_bytes: int
    """The most on chip at once, what waits there for later blocks included."""
    spills: tuple[Spill, ...]
    """Of values that it makes."""

    def to_json(self) -> dict[str, object]:
        """Plain values: the nodes' count and ends in place of their names, bytes in MB (10^6)."""
        return {
            "nodes": len(self.nodes),
            "first": self.nodes[0],
            "last": self.nodes[-1],
            "inputs_mb": self.input_bytes / 1e6,
            "outputs_mb": self.output_bytes / 1e6,
            "weights_mb": self.weight_bytes / 1e6,
            "fused_mb": self.fused_bytes / 1e6,
            "unfused_mb": self.unfused_bytes / 1e6,
            "vtcm_mb": self.vtcm_bytes / 1e6,
            "spill_mb": sum(spill.written for spill in self.spills) / 1e6,
        }


@dataclasses.dataclass(frozen=True)
class TrafficModel:
    """Predicted DRAM bytes of one inference, and the blocks that they are of."""

    blocks: tuple[Block, ...]
    judged: bool = True
    """Whether the model was compared with the compiler's bytes in these precisions."""

    @property
    def fused(self) -> int:
        """Bytes read and written."""
        return sum(block.fused_bytes for block in self.blocks)

    @property
    def unfused(self) -> int:
        """Bytes, were every value written to DRAM and read from there by each of its readers."""
        return sum(block.unfused_bytes for block in self.blocks)

    @property
    def spilled(self) -> int:
        """Bytes written for want of room."""
        return sum(spill.written for block in self.blocks for spill in block.spills)

    @property
    def calibrated(self) -> bool:
        """Whether the bytes are near the compiler's: where something spills, they tell no more than the order."""
        return self.judged and not self.spilled

    @property
    def saving(self) -> float | None:
        """Share of the unfused bytes that are never moved; None where there are none."""
        return 1 - self.fused / self.unfused if self.unfused else None

    def reasons(self) -> dict[str, str]:
        """Why the saving is missing, by its JSON pointer."""
        return {} if self.saving is not None else {"/traffic_model/saving": "no node moves a byte"}

    def to_json(self) -> dict[str, object]:
        """The group traffic_model of results.json. MB = 10^6 bytes."""
        return {
            "fused_mb": self.fused / 1e6,
            "unfused_mb": self.unfused / 1e6,
            "spill_mb": self.spilled / 1e6,
            "saving": self.saving,
            "blocks": [block.to_json() for block in self.blocks],
            "source": "predicted",
            "calibrated": self.calibrated,
        }


def traffic_model(flow: Flow, vtcm_bytes: float, precisions: Sequence[str] = JUDGED) -> TrafficModel:
    """The blocks of a model on a chip with that much VTCM, and what they move. `precisions` are those of its products.

    A block that would move more than its nodes do one by one, for want of room, is computed one by one.
    """
    room = vtcm_bytes * SHARE
    lives = Lives(flow)
    moved = follow(flow, tiles(flow, room), room)
    joined = _joined(cuts(flow, room), lives, {lives.made[name] for name in moved.spilled})
    blocks = tuple(_block(flow, lives, moved, *ends) for ends in zip([0, *joined], joined, strict=False))
    return TrafficModel(blocks, judged=set(precisions) == set(JUDGED))


def cuts(flow: Flow, room: float) -> list[int]:
    """Where blocks end: each by the number of the stage behind it, the last one the number of stages.

    Of all ways to cut, with at most `LONGEST` nodes a block, the one with the least `Run.overflow` in all; of equals
    the one with the fewest cuts. Time grows with the nodes times the longest block.
    """
    lives = Lives(flow)
    best: list[tuple[float, int]] = [(0.0, 0)]
    before = [0]
    for stop in range(1, len(flow.stages) + 1):
        run = Run(flow, lives, stop)
        found, start = (math.inf, 0), stop
        while run.start > max(0, stop - LONGEST):
            run.grow()
            if run.length > 1 and not run.fits(room):
                break  # a longer one holds more
            cost, count = best[run.start]
            tried = cost + run.overflow(room), count + 1
            if tried < found:
                found, start = tried, run.start
        best.append(found)
        before.append(start)
    ends = [len(flow.stages)]
    while before[ends[-1]]:
        ends.append(before[ends[-1]])
    return ends[::-1] if flow.stages else []


def _joined(ends: Sequence[int], lives: Lives, spilled: set[int]) -> list[int]:
    """The ends of blocks, those left out behind which nothing leaves the chip: no value is spilled across them."""
    crossed = [
        end for end in ends[:-1] if any(made < end and lives.last_of(made) >= end and made >= 0 for made in spilled)
    ]
    return [*crossed, *ends[-1:]]


def _block(flow: Flow, lives: Lives, moved: Moved, start: int, stop: int) -> Block:
    stages = flow.stages[start:stop]
    made = [name for stage in stages for name in stage.makes]
    read = dict.fromkeys(name for stage in stages for name in stage.reads if lives.made[name] < start)
    outputs = [name for name in made if lives.last[name] >= stop]
    unfused = sum(
        stage.weight_bytes + sum(flow.values[name].padded for name in (*stage.reads, *stage.makes)) for stage in stages
    )
    end = len(flow.stages)
    fused = sum(moved.weights[start:stop])
    fused += sum(
        flow.values[name].bytes for name in flow.inputs if start <= min(lives.readers[name], default=-1) < stop
    )
    fused += sum(flow.values[name].bytes for name in made if name in flow.outputs)
    spills = []
    for name, by_stage in moved.filled.items():
        fused += sum(count for stage, count in by_stage.items() if start <= stage < stop)
        if name in made:
            fused += by_stage.get(end, 0)
    for name in made:
        if name in moved.spilled:
            fused += moved.spilled[name]
            spills.append(Spill(name, moved.spilled[name], sum(moved.filled.get(name, {}).values())))
    return Block(
        nodes=tuple(stage.name for stage in stages),
        input_bytes=sum(flow.values[name].padded for name in read),
        output_bytes=sum(flow.values[name].padded for name in outputs),
        weight_bytes=sum(stage.weight_bytes for stage in stages),
        fused_bytes=min(fused, unfused),
        unfused_bytes=unfused,
        vtcm_bytes=max(moved.peak[start:stop], default=0),
        spills=tuple(spills),
    )
