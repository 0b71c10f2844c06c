"""What lies in the on-chip memory while tiles are computed in a given order, and what goes to DRAM for want of room.

Where the memory is full, what is read again last leaves it (Belady's rule, the best there is for parts of one size). A
part of a value is then written to DRAM, once, and read back when it is needed; weights are only read again.
"""

from __future__ import annotations

import dataclasses
import heapq
from collections.abc import Sequence

from anfbuild.simulator.schedule import Tile, is_heavy, parts
from anfbuild.simulator.tiling import Flow

STREAM = 2**19
"""Bytes of weights on chip at once, of a node whose weights are read past it."""
_NEVER = 1 << 60


@dataclasses.dataclass
class Moved:
    """Bytes of one inference; by the number of a stage, or by a value's name."""

    weights: list[int]
    """Read by each stage, weights that had to leave read again."""
    peak: list[int]
    """The most on chip while the stage is computed."""
    spilled: dict[str, int]
    """Written for want of room."""
    filled: dict[str, dict[int, int]]
    """Read back by each stage; the number of stages stands for the end, where outputs are put together."""


def follow(flow: Flow, order: Sequence[Tile], room: float) -> Moved:
    """What moves when the tiles are computed in that order with `room` bytes on chip.

    The model's inputs lie on chip from the start, as they came. Its outputs are put into the order that their reader
    expects at the end, and wait on chip until then.
    """
    return _Memory(flow, order, room).run()


class _Memory:
    def __init__(self, flow: Flow, order: Sequence[Tile], room: float) -> None:
        self._flow, self._order, self._room = flow, order, room
        self._counts = parts(flow)
        self._first: dict[str, int] = {}
        """The number of a value's first part; the parts of the others follow. Weights come behind all of them."""
        self._owner: list[str] = []
        self._size: list[int] = []
        for name, count in self._counts.items():
            self._first[name] = len(self._size)
            share, rest = divmod(flow.values[name].padded, count)
            self._size += [share + (part < rest) for part in range(count)]
            self._owner += [name] * count
        self._weights = len(self._size)
        self._size += [stage.weight_bytes for stage in flow.stages]
        self._uses: list[list[int]] = [[] for _ in self._size]
        """When each part is used, the next use last."""
        self._resident: set[int] = set()
        self._saved: set[int] = set()
        self._used = 0
        self._queue: list[tuple[int, int]] = []
        stages = len(flow.stages)
        self._moved = Moved([0] * stages, [0] * stages, {}, {})

    def run(self) -> Moved:
        needs = [self._needs(tile) for tile in self._order]
        end = len(self._order)
        for name in self._flow.outputs:
            for part in range(self._counts[name]):
                self._uses[self._first[name] + part].append(end)
        for now in range(end - 1, -1, -1):
            for part in needs[now]:
                self._uses[part].append(now)
        self._begin()
        for now, tile in enumerate(self._order):
            self._step(now, tile, needs[now])
        self._end()
        return self._moved

    def _needs(self, tile: Tile) -> list[int]:
        """What a tile reads, its weights last where they are kept on chip."""
        needed = [self._first[name] + part for name, part in tile.uses]
        stage = self._flow.stages[tile.stage]
        if stage.weight_bytes and not is_heavy(stage, self._room):
            needed.append(self._weights + tile.stage)
        return needed

    def _begin(self) -> None:
        for name in self._flow.inputs:
            for part in range(self._first[name], self._first[name] + self._counts[name]):
                self._saved.add(part)
                if self._uses[part]:
                    self._put(part)
                    self._release(part)
        self._make_room(frozenset())

    def _step(self, now: int, tile: Tile, needed: Sequence[int]) -> None:
        stage = self._flow.stages[tile.stage]
        heavy = is_heavy(stage, self._room)
        for part in needed:
            if part not in self._resident:
                self._put(part)
                self._read(part, tile.stage)
            uses = self._uses[part]
            while uses and uses[-1] <= now:
                uses.pop()
        made = [self._first[name] + part for name, part in tile.makes]
        for part in made:
            if self._uses[part]:
                self._put(part)
        if heavy and tile.first:
            self._moved.weights[tile.stage] += stage.weight_bytes
        busy = frozenset((*needed, *made))
        stream = min(stage.weight_bytes, STREAM) if heavy else 0
        self._used += stream
        self._make_room(busy)
        peak = min(self._used, int(self._room))  # what does not fit even so goes through in parts
        self._moved.peak[tile.stage] = max(self._moved.peak[tile.stage], peak)
        self._used -= stream
        for part in busy:
            if part in self._resident:
                self._release(part)
        self._make_room(frozenset())

    def _end(self) -> None:
        for name in self._flow.outputs:
            for part in range(self._first[name], self._first[name] + self._counts[name]):
                if part not in self._resident:
                    self._read(part, len(self._flow.stages))

    def _put(self, part: int) -> None:
        if part not in self._resident:
            self._resident.add(part)
            self._used += self._size[part]

    def _release(self, part: int) -> None:
        """Let a part go where nothing reads it again; else it may leave when room is wanted."""
        if not self._uses[part]:
            self._resident.remove(part)
            self._used -= self._size[part]
        else:
            heapq.heappush(self._queue, (-self._uses[part][-1], part))

    def _make_room(self, busy: frozenset[int]) -> None:
        kept = []
        while self._used > self._room and self._queue:
            entry = heapq.heappop(self._queue)
            part = entry[1]
            next_use = self._uses[part][-1] if self._uses[part] else _NEVER
            if part not in self._resident or -entry[0] != next_use:
                continue  # it left, or was used since
            if part in busy:
                kept.append(entry)
                continue
            self._resident.remove(part)
            self._used -= self._size[part]
            if part < self._weights and part not in self._saved:
                self._saved.add(part)
                name = self._owner[part]
                self._moved.spilled[name] = self._moved.spilled.get(name, 0) + self._size[part]
        for entry in kept:
            heapq.heappush(self._queue, entry)

    def _read(self, part: int, stage: int) -> None:
        if part >= self._weights:
            self._moved.weights[stage] += self._size[part]
            return
        by_stage = self._moved.filled.setdefault(self._owner[part], {})
        by_stage[stage] = by_stage.get(stage, 0) + self._size[part]
