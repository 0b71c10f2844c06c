"""Which unit each piece of work runs on, so that the whole takes the least time, energy, or product of both.

Work runs one piece after the other in the order given. A piece costs what its unit takes for it; a value that its unit
does not have yet is brought there once, from wherever that is cheapest; a unit that takes over pays its launch. Values
go in from the CPU's memory and their results come back to it.

The search goes through the pieces once and keeps, for each place that the values still needed can be in, the costs that
nothing else is better than. A place is dropped when a cheaper one stays cheaper even with all that it may have to bring
that the other has already. Nothing that could become the best is lost that way, so the plan is the best one (where the
quickest way of a value is also the one that takes the least energy) as long as the number of places stays within
`MOST_PLACES`; `Plan.exact` says so.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

Objective = Literal["latency", "energy", "product"]
HOST = "CPU"
"""The unit whose memory inputs come from and outputs go to."""
MOST_PLACES = 512


@dataclasses.dataclass(frozen=True)
class Cost:
    """Milliseconds and millijoules."""

    ms: float = 0.0
    mj: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.ms + other.ms, self.mj + other.mj)


@dataclasses.dataclass(frozen=True)
class Link:
    """What bringing a value from one unit's memory to another's costs."""

    fixed: Cost
    """Of each value, however small: the call, and the conversion's start."""
    ms_byte: float
    mj_byte: float

    def cost(self, size: float) -> Cost:
        """Cost of `size` bytes."""
        return Cost(self.fixed.ms + size * self.ms_byte, self.fixed.mj + size * self.mj_byte)


@dataclasses.dataclass(frozen=True)
class Piece:
    """Work that is not divided: a node, or an execution block."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    costs: Mapping[str, Cost]
    """By the units that can do it."""
    memory: float = 0.0
    """Bytes that it keeps on its unit: weights."""


@dataclasses.dataclass(frozen=True)
class Machine:
    """The units: what taking over costs, what lies between each two, and how much each can hold."""

    launch: Mapping[str, Cost]
    links: Mapping[tuple[str, str], Link]
    memory: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Bytes of `Piece.memory` that a unit takes; a unit that is not named takes any."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """The unit of each piece, in their order, and what all costs."""

    units: tuple[str, ...]
    cost: Cost
    exact: bool
    """False where the search had to drop places that could have led to a better plan."""


@dataclasses.dataclass(frozen=True)
class _Label:
    """One way to have got here."""

    cost: Cost
    memory: tuple[float, ...]
    units: _Chain | None

    def within(self, other: _Label) -> bool:
        """Whether this is as good as `other` in everything."""
        return (
            self.cost.ms <= other.cost.ms
            and self.cost.mj <= other.cost.mj
            and all(mine <= its for mine, its in zip(self.memory, other.memory, strict=True))
        )


@dataclasses.dataclass(frozen=True)
class _Chain:
    unit: str
    before: _Chain | None


_Where = tuple[tuple[str, frozenset[str]], ...]
"""The values still needed, by name, and the units that have each."""


@dataclasses.dataclass(frozen=True)
class _Place:
    last: str
    where: _Where


def schedule(
    pieces: Sequence[Piece],
    sizes: Mapping[str, float],
    outputs: Sequence[str],
    machine: Machine,
    objective: Objective = "latency",
) -> Plan | None:
    """The best plan for `pieces`, each after what it reads; None where a memory limit leaves no plan.

    `sizes` are the bytes of every value; one that no piece writes is an input. Raises ValueError for a piece that no
    unit can do, a value without a size, one that is read before it is written, and a pair of units without a link.
    """
    _check(pieces, sizes, outputs, machine)
    limited = tuple(sorted(machine.memory))
    needed = _last_use(pieces, outputs)
    frontier = {_start(pieces, needed): [_Label(Cost(), (0.0,) * len(limited), None)]}
    exact = True
    better = _comparison(objective)
    for index, piece in enumerate(pieces):
        following: dict[_Place, list[_Label]] = {}
        for place, labels in frontier.items():
            for unit in piece.costs:
                after, cost = _step(place, piece, unit, index, sizes, needed, machine)
                for label in labels:
                    memory = tuple(
                        held + (piece.memory if name == unit else 0.0)
                        for name, held in zip(limited, label.memory, strict=True)
                    )
                    if all(held <= machine.memory[name] for name, held in zip(limited, memory, strict=True)):
                        found = _Label(label.cost + cost, memory, _Chain(unit, label.units))
                        _keep(following.setdefault(after, []), found, better)
        frontier, dropped = _prune(following, sizes, machine, objective)
        exact = exact and not dropped
    ends = [
        dataclasses.replace(label, cost=label.cost + _bring(dict(place.where), outputs, HOST, sizes, machine))
        for place, labels in frontier.items()
        for label in labels
    ]
    if not ends:
        return None
    best = min(ends, key=lambda label: _value(label.cost, objective))
    return Plan(_units(best.units), best.cost, exact)


def evaluate(
    pieces: Sequence[Piece],
    units: Sequence[str],
    sizes: Mapping[str, float],
    outputs: Sequence[str],
    machine: Machine,
) -> Cost:
    """What a given plan costs, by the same rules."""
    needed = _last_use(pieces, outputs)
    place, total = _start(pieces, needed), Cost()
    for index, (piece, unit) in enumerate(zip(pieces, units, strict=True)):
        place, cost = _step(place, piece, unit, index, sizes, needed, machine)
        total += cost
    return total + _bring(dict(place.where), outputs, HOST, sizes, machine)


def _start(pieces: Sequence[Piece], needed: Mapping[str, int]) -> _Place:
    """The inputs, which nothing writes, in the host's memory."""
    inputs = sorted(set(needed) - {name for piece in pieces for name in piece.writes})
    return _Place(HOST, tuple((name, frozenset({HOST})) for name in inputs))


def _value(cost: Cost, objective: Objective) -> float:
    return {"latency": cost.ms, "energy": cost.mj, "product": cost.ms * cost.mj}[objective]


def _comparison(objective: Objective) -> Callable[[_Label, _Label], bool]:
    """Whether the first label makes the second one useless. For the product, time and energy count both."""
    if objective == "product":
        return _Label.within

    def alone(first: _Label, second: _Label) -> bool:
        return _value(first.cost, objective) <= _value(second.cost, objective) and all(
            mine <= its for mine, its in zip(first.memory, second.memory, strict=True)
        )

    return alone


def _step(
    place: _Place,
    piece: Piece,
    unit: str,
    index: int,
    sizes: Mapping[str, float],
    needed: Mapping[str, int],
    machine: Machine,
) -> tuple[_Place, Cost]:
    """Where the values are after `piece` has run on `unit`, and what that costs."""
    where = dict(place.where)
    cost = piece.costs[unit] + _bring(where, piece.reads, unit, sizes, machine)
    if unit != place.last:
        cost += machine.launch.get(unit, Cost())
    for name in piece.reads:
        where[name] = where[name] | {unit}
    for name in piece.writes:
        where[name] = frozenset({unit})
    alive = tuple(sorted((name, has) for name, has in where.items() if needed.get(name, -1) > index))
    return _Place(unit, alive), cost


def _bring(
    where: Mapping[str, frozenset[str]], names: Sequence[str], unit: str, sizes: Mapping[str, float], machine: Machine
) -> Cost:
    """What it costs to have all of `names` on `unit`, each from where that is quickest."""
    total = Cost()
    for name in dict.fromkeys(names):
        total += _way(where[name], unit, sizes[name], machine)
    return total


def _keep(labels: list[_Label], found: _Label, better: Callable[[_Label, _Label], bool]) -> None:
    """Add `found` unless one of `labels` is as good; drop those that it is better than."""
    if not any(better(label, found) for label in labels):
        labels[:] = [label for label in labels if not better(found, label)]
        labels.append(found)


def _prune(
    frontier: dict[_Place, list[_Label]], sizes: Mapping[str, float], machine: Machine, objective: Objective
) -> tuple[dict[_Place, list[_Label]], bool]:
    """Drop what the cheapest place could reach for less, then all but `MOST_PLACES`; True where the latter happened."""
    if len(frontier) > 1:
        best = min(frontier, key=lambda place: min(_value(label.cost, objective) for label in frontier[place]))
        better = _comparison(objective)
        kept = {best: frontier[best]}
        for place, labels in frontier.items():
            if place != best:
                gap = _reach(best, place, sizes, machine)
                reached = [dataclasses.replace(label, cost=label.cost + gap) for label in frontier[best]]
                left = [label for label in labels if not any(better(other, label) for other in reached)]
                if left:
                    kept[place] = left
        frontier = kept
    if len(frontier) <= MOST_PLACES:
        return frontier, False
    ranked = sorted(frontier, key=lambda place: min(_value(label.cost, objective) for label in frontier[place]))
    return {place: frontier[place] for place in ranked[:MOST_PLACES]}, True


def _reach(start: _Place, goal: _Place, sizes: Mapping[str, float], machine: Machine) -> Cost:
    """What doing as `goal` will costs from `start` beyond what it costs from `goal`, at most.

    Each value is brought to each unit once at most, and copies made meanwhile serve both alike, so that the difference
    is never more than the difference now.
    """
    total = Cost()
    units = sorted(machine.launch.keys() | {unit for pair in machine.links for unit in pair})
    for (name, has), (_, wanted) in zip(start.where, goal.where, strict=True):
        if has != wanted:
            for unit in units:
                mine, its = (_way(copies, unit, sizes[name], machine) for copies in (has, wanted))
                total += Cost(max(0.0, mine.ms - its.ms), max(0.0, mine.mj - its.mj))
    if start.last != goal.last:
        total += machine.launch.get(goal.last, Cost())
    return total


def _way(copies: frozenset[str], unit: str, size: float, machine: Machine) -> Cost:
    """The quickest way of a value to `unit`."""
    if unit in copies:
        return Cost()
    return min((machine.links[source, unit].cost(size) for source in sorted(copies)), key=lambda way: (way.ms, way.mj))


def _last_use(pieces: Sequence[Piece], outputs: Sequence[str]) -> dict[str, int]:
    """The index of the last piece that reads each value; endless for an output."""
    last: dict[str, int] = {}
    for index, piece in enumerate(pieces):
        last.update(dict.fromkeys(piece.reads, index))
    return last | dict.fromkeys(outputs, len(pieces))


def _units(chain: _Chain | None) -> tuple[str, ...]:
    units = []
    while chain is not None:
        units.append(chain.unit)
        chain = chain.before
    return tuple(reversed(units))


def _check(pieces: Sequence[Piece], sizes: Mapping[str, float], outputs: Sequence[str], machine: Machine) -> None:
    written_by = {name: piece.name for piece in pieces for name in piece.writes}
    written: set[str] = set()
    units = {HOST} | {unit for piece in pieces for unit in piece.costs}
    for piece in pieces:
        if not piece.costs:
            raise ValueError(f"no unit can do {piece.name}")
        for name in piece.reads:
            if name in written_by and name not in written:
                raise ValueError(f"{piece.name} reads {name} before {written_by[name]} writes it")
        written |= set(piece.writes)
    unsized = sorted({name for piece in pieces for name in (*piece.reads, *piece.writes)} | set(outputs) - set(sizes))
    for name in unsized:
        if not 0 <= sizes.get(name, -1.0) < math.inf:
            raise ValueError(f"the value {name} has no size")
    for pair in ((source, unit) for source in units for unit in units if source != unit):
        if pair not in machine.links:
            raise ValueError(f"there is no link from {pair[0]} to {pair[1]}")
