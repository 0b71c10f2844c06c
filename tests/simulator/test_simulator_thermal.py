import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.simulator.thermal import CLOCKS, Enclosure, Load, run, sustainable_fps, sustainable_watts

PHONE = Enclosure()
HOT = Load(ms=10.0, dynamic_mj=45.0, static_w=1.0)


def test_the_skin_warms_as_the_exact_solution_says() -> None:
    load = Load(ms=10.0, dynamic_mj=10.0, static_w=1.0)  # 2 W: no governor
    moment = run(load).moments[200]
    expected = PHONE.ambient_c + 2.0 * PHONE.skin_k_w * (1 - math.exp(-200 / (PHONE.skin_k_w * PHONE.skin_j_k)))
    assert moment.skin_c == pytest.approx(expected)
    assert moment.junction_c == pytest.approx(expected + 2.0 * PHONE.junction_k_w)


def test_a_load_below_the_sustainable_power_is_never_slowed_down() -> None:
    cool = run(dataclasses.replace(HOT, fps=sustainable_fps(HOT)), minutes=120)
    assert cool.throttle_s is None
    assert cool.fps_end == pytest.approx(cool.fps_start)


def test_a_load_above_it_is_slowed_down_when_the_skin_reaches_its_limit() -> None:
    heated = run(HOT)
    watts = HOT.watts(1.0)
    rise = (PHONE.skin_limit_c - PHONE.ambient_c) / (watts * PHONE.skin_k_w)
    assert heated.throttle_s == pytest.approx(-PHONE.skin_k_w * PHONE.skin_j_k * math.log(1 - rise), abs=2.0)
    assert heated.fps_end < heated.fps_start
    assert max(moment.skin_c for moment in heated.moments) < PHONE.skin_limit_c + PHONE.hysteresis_c


def test_a_hot_junction_slows_the_chip_down_while_the_skin_is_still_cool() -> None:
    heated = run(HOT, dataclasses.replace(PHONE, junction_k_w=20.0))
    assert heated.throttle_s is not None
    assert heated.throttle_s < 60
    assert heated.moments[int(heated.throttle_s)].skin_c < PHONE.skin_limit_c - 5


def test_a_cooler_gpu_leaves_more_room() -> None:
    with_gpu, without = dataclasses.replace(HOT, background_w=1.0), HOT
    assert sustainable_fps(with_gpu) < sustainable_fps(without)
    assert run(with_gpu).throttle_s < run(without).throttle_s


def test_where_the_rest_of_the_phone_is_too_hot_no_frame_rate_is_sustainable() -> None:
    assert sustainable_fps(dataclasses.replace(HOT, background_w=sustainable_watts())) is None


@pytest.mark.parametrize(
    "wrong",
    [{"skin_k_w": 0.0}, {"skin_j_k": -1.0}, {"skin_limit_c": 20.0}, {"hysteresis_c": math.nan}, {"ambient_c": 41.0}],
)
def test_an_enclosure_that_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"limit|finite"):
        dataclasses.replace(PHONE, **wrong)


@given(
    ms=st.floats(0.05, 1e3),
    mj=st.floats(0, 1e3),
    static=st.floats(0, 10),
    background=st.floats(0, 3),
    fps=st.none() | st.floats(0.1, 1e3),
)
def test_a_run_stays_physical(ms: float, mj: float, static: float, background: float, fps: float | None) -> None:
    load = Load(ms, mj, static, background, fps)
    heated = run(load, minutes=5)
    for before, after in zip(heated.moments, heated.moments[1:], strict=False):
        assert after.clock in CLOCKS
        assert after.skin_c >= PHONE.ambient_c - 1e-9
        assert after.fps <= load.rate(1.0) + 1e-9
        assert abs(CLOCKS.index(after.clock) - CLOCKS.index(before.clock)) <= 1
