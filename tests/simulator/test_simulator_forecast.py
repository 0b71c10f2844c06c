import pytest

from anfbuild.errors import RecipeError
from anfbuild.simulator.energy import Activity
from anfbuild.simulator.forecast import forecast
from anfbuild.simulator.modes import MODES

HEAVY = Activity({"w8a8": 45e9}, dram_bytes=120e6)


def test_every_mode_stands_beside_the_one_asked_for() -> None:
    found = forecast(HEAVY, 13.0, "sustained_high_performance")
    assert set(found.modes) == set(MODES)
    assert found.watts == found.modes["sustained_high_performance"].watts == pytest.approx(found.energy.total / 13.0)
    assert found.modes["burst"].fps_start == pytest.approx(1.065 * 1000 / 13.0)


def test_the_mode_asked_for_changes_what_is_asked_not_what_is_so() -> None:
    sustained = forecast(HEAVY, 13.0, "sustained_high_performance")
    burst = forecast(HEAVY, 13.0 / 1.065, "burst")
    assert burst.modes["balanced"].fps_start == pytest.approx(sustained.modes["balanced"].fps_start)
    assert burst.watts > sustained.watts


def test_a_screen_that_is_drawn_beside_it_brings_the_throttling_forward() -> None:
    alone = forecast(HEAVY, 13.0, "burst").modes["burst"]
    beside = forecast(HEAVY, 13.0, "burst", background_w=0.8).modes["burst"]
    assert beside.throttle_s < alone.throttle_s
    assert beside.sustainable_fps < alone.sustainable_fps


def test_the_document_says_that_nothing_of_it_is_calibrated() -> None:
    document = forecast(HEAVY, 13.0, "burst").to_json()
    assert {group["calibrated"] for group in document.values()} == {False}
    parts = document["energy_mj"]
    assert parts["total"] == pytest.approx(sum(parts[key] for key in ("products", "dram", "on_chip", "static")))


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(RecipeError, match="turbo"):
        forecast(HEAVY, 13.0, "turbo")
