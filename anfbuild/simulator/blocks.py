"""Cuts a model into execution blocks: runs of nodes that are computed rows at a time, so that what lies between them
never leaves the on-chip memory (VTCM).

What crosses a cut must lie on chip whole, and what does not fit goes to DRAM and back. So the cuts are chosen where
least does not fit (`_cuts`, dynamic programming over the nodes' order), and then the memory is followed block by block
(`_Memory`): where it is too small, the part that is read again last is written to DRAM, once, and read back when it is
needed (Belady's rule, which is optimal for what is read once).
"""

from __future__ import annotations

import bisect
import dataclasses
import math
from collections.abc import Sequence

from anfbuild.simulator.tiling import ROWS, Flow

SHARE = 1.0
"""Share of the VTCM that values and weights can have."""
STREAM = 2**19
"""Bytes of weights on chip at once where each is used but once."""
LONGEST = 64
"""Nodes of a block at most, which bounds the search; a cut that nothing spills across costs nothing."""


@dataclasses.dataclass(frozen=True)
class Spill:
    """A part of a value that did not fit."""

    value: str
    written: int
    read: int


@dataclasses.dataclass(frozen=True)
class Block:
    """Nodes that run without leaving on-chip memory. All bytes are those of one inference."""

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
    """The most that it needs at once, what lies there for later blocks apart."""
    held_bytes: int
    """What lies on chip for later blocks in the meantime, before anything is spilled."""
    spills: tuple[Spill, ...]


@dataclasses.dataclass(frozen=True)
class Traffic:
    """DRAM bytes of one inference, and the blocks that they come of."""

    blocks: tuple[Block, ...]
    read: int
    write: int
    spilled: int
    """Part of `write`."""

    @property
    def fused(self) -> int:
        """Bytes read and written."""
        return self.read + self.write

    @property
    def unfused(self) -> int:
        """Bytes, were every value written to DRAM and read from there by each of its readers."""
        return sum(block.unfused_bytes for block in self.blocks)

    @property
    def saving(self) -> float | None:
        """Share of the unfused bytes that stay on chip; None where there are none."""
        return 1 - self.fused / self.unfused if self.unfused else None


def execution_blocks(flow: Flow, vtcm_bytes: float) -> Traffic:
    """The blocks of a model on a chip with that much VTCM, and what they move."""
    room = vtcm_bytes * SHARE
    lives = _Lives(flow)
    memory = _Memory(flow, lives, room)
    return memory.run(_cuts(flow, lives, room))


class _Lives:
    """When each value is made and read, by the number of the stage; an input is made at -1, an output read at the end."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.made = dict.fromkeys(flow.inputs, -1)
        self.readers: dict[str, list[int]] = {name: [] for name in flow.values}
        for index, stage in enumerate(flow.stages):
            self.made.update(dict.fromkeys(stage.makes, index))
            for name in stage.reads:
                self.readers[name].append(index)
        for name in flow.outputs:
            self.readers[name].append(len(flow.stages))
        self.last = {name: max(readers, default=-1) for name, readers in self.readers.items()}
        self.crossing: list[int] = [0] * (len(flow.stages) + 1)
        """Bytes on chip that cross the cut before each stage: made before it, read at it or behind."""
        steps = [0] * (len(flow.stages) + 2)
        for name, made in self.made.items():
            if self.last[name] > made:
                steps[made + 1] += flow.values[name].padded
                steps[self.last[name] + 1] -= flow.values[name].padded
        total = 0
        for index in range(len(flow.stages) + 1):
            total += steps[index]
            self.crossing[index] = total


class Run:
    """A run of stages that ends before `stop`, grown towards the front: what lies on chip while it is computed rows at
    a time. For each value between two of its stages, how many rows ahead of the run's end it is made."""

    def __init__(self, flow: Flow, lives: _Lives, stop: int) -> None:
        self._flow, self._lives, self.stop = flow, lives, stop
        self.start = stop
        self.weights = 0
        self.held = 0
        self.whole_inputs: dict[str, int] = {}
        self._ahead: dict[str, float] = {}
        self.through = sum(
            flow.values[name].padded for name, made in lives.made.items() if made < stop <= lives.last[name]
        )

    def grow(self) -> None:
        """Take in the stage before."""
        self.start -= 1
        stage = self._flow.stages[self.start]
        self.weights += stage.weight_bytes
        for name in stage.makes:
            value = self._flow.values[name]
            ends = self._lives.last[name] >= self.stop or not self._lives.readers[name]
            if self._lives.last[name] >= self.stop:
                self.through -= value.padded
            inside = [reader for reader in self._lives.readers[name] if reader < self.stop]
            self._ahead[name] = 0.0
            if inside:
                rows, self._ahead[name] = self._rows(name, inside)
                if not ends:
                    self.held += math.ceil(value.padded * min(1.0, rows / value.rows))

    def fits(self, room: float) -> bool:
        """Whether the run can be computed rows at a time, all its weights on chip."""
        return self.held + self.weights <= room

    def overflow(self, room: float) -> float:
        """Bytes without room at the cut before the run, and while it goes on beside what lies on chip for later."""
        cut = max(0.0, self._lives.crossing[self.start] - room) if self.start else 0.0
        aside = self.through + (self.held + self.weights if self.stop - self.start > 1 else 0) - room
        return cut + max(0.0, aside)

    def _rows(self, name: str, readers: Sequence[int]) -> tuple[float, float]:
        """Rows of a value that are held, and how many it is made ahead of the rows that leave the run."""
        total = self._flow.values[name].rows
        first, last = 0.0, math.inf
        for reader in readers:
            stage = self._flow.stages[reader]
            window = stage.reads[name]
            if window.whole:
                return total, total
            ahead = max(self._ahead[made] for made in stage.makes) * window.stride
            first = max(first, ahead + window.kernel - window.before - window.stride)
            last = min(last, ahead - window.before)
        return min(total, math.ceil((first - last) / ROWS) * ROWS + ROWS), min(total, first)


def _cuts(flow: Flow, lives: _Lives, room: float) -> list[int]:
    """Where the blocks end: numbers of stages, the last one that of the stages. Least bytes cross the cuts without
    room; of equals the fewest cuts."""
    count = len(flow.stages)
    best: list[tuple[float, int]] = [(0.0, 0)]
    before = [0]
    for stop in range(1, count + 1):
        run = Run(flow, lives, stop)
        found: tuple[float, int] = (math.inf, 0)
        start = stop
        while run.start > max(0, stop - LONGEST):
            run.grow()
            if stop - run.start > 1 and not run.fits(room):
                break
            cost, cuts = best[run.start]
            tried = cost + run.overflow(room), cuts + 1
            if tried <= found:
                found, start = tried, run.start
        best.append(found)
        before.append(start)
    cuts = [count]
    while cuts[-1]:
        cuts.append(before[cuts[-1]])
    return cuts[-2::-1] if count else []


class _Memory:
    """What lies on chip and what was written to DRAM, followed run by run."""

    def __init__(self, flow: Flow, lives: _Lives, room: float) -> None:
        self._flow, self._lives, self._room = flow, lives, room
        self._resident: dict[str, int] = {}
        self._saved: dict[str, int] = {}
        self._written: dict[str, int] = {}
        self._filled: dict[str, int] = {}

    def run(self, cuts: Sequence[int]) -> Traffic:
        flow = self._flow
        read = sum(flow.values[name].bytes for name in flow.inputs)
        write = sum(flow.values[name].bytes for name in flow.outputs)
        for name in flow.inputs:
            if self._lives.readers[name]:
                self._resident[name] = flow.values[name].padded
        self._evict(0, 0)
        start = 0
        for stop in cuts:
            self._step(start, stop)
            start = stop
        for name in flow.outputs:
            self._fill(name)
        read += sum(stage.weight_bytes for stage in flow.stages) + sum(self._filled.values())
        spilled = sum(self._written.values())
        return Traffic((), read, write + spilled, spilled)

    def _step(self, start: int, stop: int) -> None:
        flow, lives = self._flow, self._lives
        run = Run(flow, lives, stop)
        while run.start > start:
            run.grow()
        working = run.held + (run.weights if stop - start > 1 else min(run.weights, STREAM))
        needed = dict.fromkeys(
            name for stage in flow.stages[start:stop] for name in stage.reads if lives.made[name] < start
        )
        self._evict(working, start)
        for name in needed:
            self._fill(name)
        for name in [name for name in self._resident if lives.last[name] < stop]:
            del self._resident[name]
        for stage in flow.stages[start:stop]:
            for name in stage.makes:
                if lives.last[name] >= stop:
                    self._resident[name] = flow.values[name].padded
        self._evict(working, stop)

    def _fill(self, name: str) -> None:
        """Read back what of a value is not on chip."""
        whole = self._flow.values[name].padded
        missing = whole - self._resident.get(name, 0)
        if missing:
            self._filled[name] = self._filled.get(name, 0) + missing
        self._resident[name] = whole

    def _evict(self, working: int, now: int) -> None:
        """Write to DRAM what exceeds the room; what is read again last goes first."""
        excess = sum(self._resident.values()) + working - self._room
        if excess <= 0:
            return
        for name in sorted(self._resident, key=lambda name: -self._next(name, now)):
            gone = min(self._resident[name], math.ceil(excess))
            self._resident[name] -= gone
            away = self._flow.values[name].padded - self._resident[name]
            fresh = max(0, away - self._saved.get(name, 0))
            self._saved[name] = self._saved.get(name, 0) + fresh
            self._written[name] = self._written.get(name, 0) + fresh
            excess -= gone
            if excess <= 0:
                return

    def _next(self, name: str, now: int) -> int:
        readers = self._lives.readers[name]
        return readers[min(bisect.bisect_left(readers, now), len(readers) - 1)]
