import dataclasses
import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anfbuild.simulator.schedule import Cost, Link, Machine, Piece, Plan, evaluate, schedule

UNITS = ("HTP", "GPU", "CPU")
PAIRS = [(a, b) for a in UNITS for b in UNITS if a != b]
MACHINE = Machine(
    launch={"HTP": Cost(0.1, 0.1), "GPU": Cost(0.3, 0.5), "CPU": Cost()},
    links={pair: Link(Cost(0.05, 0.02), 1e-6, 1e-7) for pair in PAIRS},
)


def chain(*costs: dict[str, float], size: float = 1000.0) -> tuple[list[Piece], dict[str, float], list[str]]:
    """Pieces one after the other; energy is twice the time."""
    pieces = [
        Piece(f"p{i}", (f"v{i}",), (f"v{i + 1}",), {unit: Cost(ms, 2 * ms) for unit, ms in cost.items()})
        for i, cost in enumerate(costs)
    ]
    return pieces, {f"v{i}": size for i in range(len(costs) + 1)}, [f"v{len(costs)}"]


def test_work_goes_to_the_unit_that_is_quickest() -> None:
    pieces, sizes, outputs = chain({"HTP": 1, "CPU": 50}, {"HTP": 1, "CPU": 50})
    plan = schedule(pieces, sizes, outputs, MACHINE)
    assert plan.units == ("HTP", "HTP")
    assert plan.cost.ms == pytest.approx(0.1 + 2.0 + 2 * (0.05 + 0.001))  # one launch, there and back
    assert plan.exact


def test_a_piece_is_not_taken_away_when_the_way_costs_more_than_it_saves() -> None:
    costs = ({"HTP": 1, "CPU": 50}, {"HTP": 2, "CPU": 1}, {"HTP": 1, "CPU": 50})
    pieces, sizes, outputs = chain(*costs, size=2e6)
    assert schedule(pieces, sizes, outputs, MACHINE).units == ("HTP", "HTP", "HTP")
    pieces, sizes, outputs = chain(*costs, size=1000.0)
    assert schedule(pieces, sizes, outputs, MACHINE).units == ("HTP", "CPU", "HTP")


def test_a_value_that_two_pieces_read_is_brought_once() -> None:
    pieces = [
        Piece("make", ("x",), ("y",), {"CPU": Cost(1, 1)}),
        Piece("left", ("y",), ("l",), {"HTP": Cost(1, 1)}),
        Piece("right", ("y",), ("r",), {"HTP": Cost(1, 1)}),
        Piece("join", ("l", "r"), ("z",), {"HTP": Cost(1, 1)}),
    ]
    sizes = {"x": 0.0, "y": 1e6, "l": 0.0, "r": 0.0, "z": 0.0}
    plan = schedule(pieces, sizes, ["z"], MACHINE)
    assert plan.cost.ms == pytest.approx(4 + 0.1 + (0.05 + 1.0) + 0.05)


def test_energy_and_latency_may_ask_for_different_units() -> None:
    piece = Piece("p", ("x",), ("y",), {"GPU": Cost(1, 100), "HTP": Cost(5, 10)})
    sizes = {"x": 10.0, "y": 10.0}
    chosen = {goal: schedule([piece], sizes, ["y"], MACHINE, goal).units for goal in ("latency", "energy", "product")}
    assert chosen == {"latency": ("GPU",), "energy": ("HTP",), "product": ("HTP",)}


def test_a_full_unit_leaves_the_rest_to_others_and_no_room_at_all_is_no_plan() -> None:
    pieces, sizes, outputs = chain({"HTP": 1, "CPU": 5}, {"HTP": 1, "CPU": 20})
    pieces = [dataclasses.replace(piece, memory=60e6) for piece in pieces]
    limited = dataclasses.replace(MACHINE, memory={"HTP": 100e6})
    assert schedule(pieces, sizes, outputs, limited).units == ("CPU", "HTP")
    assert schedule(pieces, sizes, outputs, dataclasses.replace(MACHINE, memory=dict.fromkeys(UNITS, 1.0))) is None


@pytest.mark.parametrize(
    ("pieces", "sizes", "words"),
    [
        ([Piece("p", ("x",), ("y",), {})], {"x": 1.0, "y": 1.0}, "no unit can do p"),
        ([Piece("p", ("x",), ("y",), {"CPU": Cost()})], {"x": 1.0}, "y has no size"),
        (
            [Piece("p", ("y",), ("z",), {"CPU": Cost()}), Piece("q", ("x",), ("y",), {"CPU": Cost()})],
            {"x": 1.0, "y": 1.0, "z": 1.0},
            "p reads y before q writes it",
        ),
        ([Piece("p", ("x",), ("y",), {"NPU": Cost()})], {"x": 1.0, "y": 1.0}, "no link"),
    ],
)
def test_what_cannot_be_planned_is_named(pieces: list[Piece], sizes: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        schedule(pieces, sizes, ["y"], MACHINE)


amounts = st.integers(0, 40).map(lambda value: value / 8)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Piece], dict[str, float], list[str], Machine]:
    """Up to six pieces, each reading one to three of the values before it, on random units, links and limits."""
    pieces: list[Piece] = []
    values = ["x0", "x1"]
    for index in range(draw(st.integers(1, 6))):
        reads = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True))
        units = draw(st.lists(st.sampled_from(UNITS), min_size=1, unique=True))
        costs = {unit: Cost(draw(amounts), draw(amounts)) for unit in units}
        pieces.append(Piece(f"p{index}", tuple(reads), (f"v{index}",), costs, memory=draw(st.integers(0, 3))))
        values.append(f"v{index}")
    sizes = {name: float(draw(st.integers(0, 20))) for name in values}
    outputs = draw(st.lists(st.sampled_from([name for name in values if name[0] == "v"]), min_size=1, unique=True))
    # One pace for time and energy, so that the quickest way to bring a value is the cheapest one too.
    paces = {pair: draw(amounts) for pair in PAIRS}
    links = {pair: Link(Cost(pace, pace), pace / 10, pace / 10) for pair, pace in paces.items()}
    launch = {unit: Cost(draw(amounts), draw(amounts)) for unit in UNITS}
    memory = draw(st.dictionaries(st.sampled_from(UNITS), st.integers(0, 12).map(float), max_size=2))
    return pieces, sizes, outputs, Machine(launch, links, memory)


def everything(pieces: list[Piece], sizes: dict[str, float], outputs: list[str], machine: Machine) -> list[Cost]:
    """The cost of every plan that memory allows."""
    costs = []
    for units in itertools.product(*(piece.costs for piece in pieces)):
        held = {unit: sum(p.memory for p, u in zip(pieces, units, strict=True) if u == unit) for unit in machine.memory}
        if all(held[unit] <= limit for unit, limit in machine.memory.items()):
            costs.append(evaluate(pieces, units, sizes, outputs, machine))
    return costs


@pytest.mark.parametrize("objective", ["latency", "energy", "product"])
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problem=graphs())
def test_no_plan_is_better(objective: str, problem: tuple[list[Piece], dict[str, float], list[str], Machine]) -> None:
    value = {"latency": lambda c: c.ms, "energy": lambda c: c.mj, "product": lambda c: c.ms * c.mj}[objective]
    plan: Plan | None = schedule(*problem, objective)
    costs = everything(*problem)
    if plan is None:
        assert not costs
        return
    assert plan.exact
    assert value(plan.cost) == pytest.approx(min(map(value, costs)))
    pieces, sizes, outputs, machine = problem
    assert evaluate(pieces, plan.units, sizes, outputs, machine).ms == pytest.approx(plan.cost.ms)


def test_a_long_network_is_planned_in_one_pass() -> None:
    """Residual blocks: the search keeps a handful of places, so that it stays exact."""
    pieces = []
    for index in range(600):
        reads = (f"v{index}",) if index % 3 else (f"v{index}", f"v{max(0, index - 3)}")
        pieces.append(Piece(f"p{index}", reads, (f"v{index + 1}",), {"HTP": Cost(0.01, 0.02), "CPU": Cost(0.2, 0.5)}))
    sizes = {f"v{index}": 1e5 for index in range(601)}
    plan = schedule(pieces, sizes, ["v600"], MACHINE)
    assert plan.exact
    assert set(plan.units) == {"HTP"}
