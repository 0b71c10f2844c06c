"""In which order tiles are computed: depth first.

A tile is `ROWS` rows of what a node makes, or more where that would be more than `MOST` tiles. The node that makes an
output asks for the tiles that its next one needs, those ask for theirs, and so on: so a value is made as late as its
readers allow, and as little as possible of it waits on chip. The compiler's run lists go like this, whole models long;
stopping at the cuts of `anfbuild.simulator.blocks` came less near to its bytes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator

from anfbuild.simulator.tiling import ROWS, Flow, Stage

MOST = 64
"""Tiles of a value at most: enough to tell what waits on chip, and a bound on the work."""
HEAVY = 0.25
"""Share of the on-chip memory from which on the weights of one node are not kept there: all its rows are computed with
one part of them before the next part is read."""

Part = tuple[str, int]
"""A value's name, and which of its tiles."""


@dataclasses.dataclass(frozen=True)
class Tile:
    """One piece of work."""

    stage: int
    first: bool
    """Whether it is the stage's first."""
    uses: tuple[Part, ...]
    makes: tuple[Part, ...]


def parts(flow: Flow) -> dict[str, int]:
    """In how many tiles each value is made."""
    return {name: max(1, min(MOST, math.ceil(value.rows / ROWS))) for name, value in flow.values.items()}


def is_heavy(stage: Stage, room: float) -> bool:
    """Whether the stage's weights are read past the on-chip memory."""
    return stage.weight_bytes > HEAVY * room


def tiles(flow: Flow, room: float) -> list[Tile]:
    """All tiles in their order, with `room` bytes on chip."""
    order = _Order(flow, room)
    read = {name for stage in flow.stages for name in stage.reads}
    ends = {*flow.outputs} | {name for stage in flow.stages for name in stage.makes if name not in read}
    for index, stage in enumerate(flow.stages):
        if ends.intersection(stage.makes):
            order.ask(index, order.count[index])
    return order.tiles


class _Order:
    def __init__(self, flow: Flow, room: float) -> None:
        self._flow, self._room = flow, room
        self._parts = parts(flow)
        self._maker = {name: index for index, stage in enumerate(flow.stages) for name in stage.makes}
        self.count = [max((self._parts[name] for name in stage.makes), default=1) for stage in flow.stages]
        """Tiles of each stage."""
        self._done = [0] * len(flow.stages)
        self.tiles: list[Tile] = []

    def ask(self, stage: int, count: int) -> None:
        """Compute the stage's first `count` tiles, and before them what they need."""
        asked = [(stage, count)]
        while asked:
            stage, count = asked[-1]
            missing = self._missing(stage) if self._done[stage] < count else None
            if missing is not None:
                asked.append(missing)
            elif self._done[stage] < count:
                until = self.count[stage] if is_heavy(self._flow.stages[stage], self._room) else self._done[stage] + 1
                self.tiles.extend(self._tile(stage, index) for index in range(self._done[stage], until))
                self._done[stage] = until
            else:
                asked.pop()

    def _missing(self, stage: int) -> tuple[int, int] | None:
        """A stage that must come first, and how many of its tiles."""
        heavy = is_heavy(self._flow.stages[stage], self._room)
        for name, _, stop in self._spans(stage, self._done[stage]):
            maker = self._maker.get(name)
            if maker is None:
                continue
            share = 1.0 if heavy else stop / self._parts[name]
            needed = math.ceil(share * self.count[maker] - 1e-9)
            if self._done[maker] < needed:
                return maker, needed
        return None

    def _spans(self, index: int, tile: int) -> Iterator[tuple[str, int, int]]:
        """Each value that a tile reads: the first of its tiles, and the one behind the last."""
        stage, values = self._flow.stages[index], self._flow.values
        made = max((values[name].rows for name in stage.makes), default=1)
        size = made / self.count[index]
        for name, window in stage.reads.items():
            count = self._parts[name]
            rows = values[name].rows / count
            if window.whole:
                yield name, 0, count
                continue
            first = tile * size * window.stride - window.before
            behind = (min(made, (tile + 1) * size) - 1) * window.stride - window.before + window.kernel
            start = max(0, min(count - 1, math.floor(first / rows + 1e-9)))
            yield name, start, max(start + 1, min(count, math.ceil(behind / rows - 1e-9)))

    def _tile(self, index: int, tile: int) -> Tile:
        uses = tuple((name, part) for name, start, stop in self._spans(index, tile) for part in range(start, stop))
        count = self.count[index]
        makes = tuple(
            (name, part)
            for name in self._flow.stages[index].makes
            for part in range(tile * self._parts[name] // count, (tile + 1) * self._parts[name] // count)
        )
        return Tile(index, tile == 0, uses, makes)
