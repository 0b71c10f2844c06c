import pytest

from anfbuild.simulator import reference
from anfbuild.simulator.reference import UNITS

BY_NAME = {unit.name: unit for unit in UNITS}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_latency_and_power_are_within_a_tenth_of_the_account(unit: reference.Unit) -> None:
    assert unit.ms == pytest.approx(unit.said_ms, rel=0.1)
    assert unit.watts == pytest.approx(unit.said_w, rel=0.1)


def test_burst_is_slowed_down_after_five_to_ten_minutes_and_sustained_is_not() -> None:
    burst = BY_NAME["HTP"].heat(clock=reference.burst_clock())
    assert 300 <= burst.throttle_s <= 600
    assert BY_NAME["HTP"].heat().throttle_s is None


def test_zero_copy_takes_a_frame_from_twelve_to_nine() -> None:
    saved = reference.transfer_ms(zero_copy=False) - reference.transfer_ms(zero_copy=True)
    assert saved == pytest.approx(3.0, rel=0.1)


def test_after_five_minutes_the_cpu_has_been_slowed_down() -> None:
    """Not in the fit; that the HTP has not follows from the test above."""
    assert BY_NAME["CPU"].heat(minutes=5).throttle_s is not None
