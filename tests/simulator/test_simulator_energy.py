import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.simulator.energy import Activity, Constants, energy

amounts = st.floats(0, 1e13)


def test_each_part_is_its_quantity_times_its_constant() -> None:
    constants = Constants(product_pj={"w8a8": 0.5, "float": 2.0}, dram_pj_byte=50, on_chip_pj_byte=2, static_w=1.5)
    spent = energy(Activity({"w8a8": 2e9, "float": 1e9}, dram_bytes=10e6, on_chip_bytes=100e6), 4.0, constants)
    assert spent.products == pytest.approx(1.0 + 2.0)
    assert spent.dram == pytest.approx(0.5)
    assert spent.on_chip == pytest.approx(0.2)
    assert spent.static == pytest.approx(6.0)
    assert spent.total == pytest.approx(9.7)


def test_a_precision_without_a_constant_costs_as_much_as_float() -> None:
    assert energy(Activity({"w4a32": 1e9}, 0), 1.0) == energy(Activity({"float": 1e9}, 0), 1.0)


def test_a_faster_clock_takes_more_for_a_product_and_nothing_more_for_dram() -> None:
    slow, fast = (energy(Activity({"w8a8": 1e9}, 1e6), 1.0, clock=clock) for clock in (1.0, 1.1))
    assert fast.products == pytest.approx(1.21 * slow.products)
    assert fast.dram == slow.dram


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_quantity_that_cannot_be_is_refused(bad: float) -> None:
    for activity, ms in ((Activity({"w8a8": bad}, 0), 1.0), (Activity({}, bad), 1.0), (Activity({}, 0), bad)):
        with pytest.raises(ValueError, match="finite"):
            energy(activity, ms)


@given(macs=amounts, more=amounts, dram=amounts, ms=st.floats(0, 1e6))
def test_more_work_never_takes_less(macs: float, more: float, dram: float, ms: float) -> None:
    little, much = energy(Activity({"w8a8": macs}, dram), ms), energy(Activity({"w8a8": macs + more}, dram), ms)
    assert 0 <= little.total <= much.total
