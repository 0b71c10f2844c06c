"""What lies on chip while a run of nodes is computed rows at a time: what the choice of cuts is judged by."""

from __future__ import annotations

import math
from collections.abc import Sequence

from anfbuild.simulator.tiling import ROWS, Flow


class Lives:
    """When each value is made and read, by the number of the stage: an input of the model is made at -1, an output
    read at the number of stages."""

    def __init__(self, flow: Flow) -> None:
        end = len(flow.stages)
        self.made = dict.fromkeys(flow.inputs, -1)
        self.readers: dict[str, list[int]] = {name: [] for name in flow.values}
        for index, stage in enumerate(flow.stages):
            self.made.update(dict.fromkeys(stage.makes, index))
            for name in stage.reads:
                self.readers[name].append(index)
        for name in flow.outputs:
            self.readers[name].append(end)
        self.last = {name: max(readers, default=-1) for name, readers in self.readers.items()}
        self._last_of: dict[int, int] = {}
        steps = [0] * (end + 2)
        for name, made in self.made.items():
            self._last_of[made] = max(self.last[name], self._last_of.get(made, -1))
            if self.last[name] > made:
                steps[made + 1] += flow.values[name].padded
                steps[self.last[name] + 1] -= flow.values[name].padded
        self.crossing: list[int] = []
        """Bytes that cross the cut before each stage: made before it, read at it or behind."""
        total = 0
        for step in steps[: end + 1]:
            total += step
            self.crossing.append(total)

    def last_of(self, stage: int) -> int:
        """The last stage that reads something that `stage` makes."""
        return self._last_of.get(stage, -1)


class Run:
    """Stages that are computed rows at a time, as a run that ends before `stop` and grows towards the front.

    A value between two of them is made so many rows ahead of the run's end, and is held from then until its slowest
    reader has passed. One that is read behind the run is made whole.
    """

    def __init__(self, flow: Flow, lives: Lives, stop: int) -> None:
        self._flow, self._lives, self._stop = flow, lives, stop
        self.start = stop
        self._weights = 0
        self._held = 0
        self._through = lives.crossing[stop]
        """Bytes that lie on chip during all of the run: made before it, read behind it."""
        self._ahead: dict[int, float] = {}
        """Rows that each stage is ahead of the run's end."""

    @property
    def length(self) -> int:
        """How many stages it has."""
        return self._stop - self.start

    def grow(self) -> None:
        """Take in the stage before."""
        self.start -= 1
        stage = self._flow.stages[self.start]
        self._weights += stage.weight_bytes
        self._ahead[self.start] = ROWS
        for name in stage.makes:
            value = self._flow.values[name]
            inside = [reader for reader in self._lives.readers[name] if reader < self._stop]
            whole = self._lives.last[name] >= self._stop
            if whole:
                self._through -= value.padded
            if inside:
                rows, ahead = self._rows(name, inside)
                self._ahead[self.start] = max(ahead, self._ahead[self.start])
                if not whole:
                    self._held += math.ceil(value.padded * rows / value.rows)

    def fits(self, room: float) -> bool:
        """Whether it can be computed so, all its weights on chip."""
        return self._held + self._weights <= room

    def overflow(self, room: float) -> float:
        """Bytes without room: of what crosses the cut before the run, and of what lies on chip all along beside it."""
        cut = max(0.0, self._lives.crossing[self.start] - room) if self.start else 0.0
        own = self._held + self._weights if self.length > 1 else 0
        return cut + max(0.0, self._through + own - room)

    def _rows(self, name: str, readers: Sequence[int]) -> tuple[float, float]:
        """Rows of a value that are held, and how many it is made ahead."""
        total = self._flow.values[name].rows
        first, last = 0.0, math.inf
        for reader in readers:
            window = self._flow.stages[reader].reads[name]
            if window.whole:
                return total, total
            ahead = self._ahead[reader]
            first = max(first, ahead * window.stride + window.kernel - window.before - window.stride)
            last = min(last, (ahead - ROWS) * window.stride - window.before)
        first = math.ceil(first / ROWS) * ROWS
        return min(total, math.ceil((first - last) / ROWS) * ROWS), min(total, first)
