"""Energy, power and half an hour of heat of an inference whose latency is known, in every performance mode."""

from __future__ import annotations

import dataclasses

from anfbuild.simulator.energy import Activity, Energy, energy
from anfbuild.simulator.modes import MODES, mode_of
from anfbuild.simulator.thermal import Load, run, sustainable_fps

MINUTES = 30.0
ASSUMPTION = (
    "no energy, power or temperature of an HTP running vision models is public: constants of like silicon and of one "
    "engineer's phone at 25 °C, nothing else running"
)
"""Why none of these figures is calibrated."""


@dataclasses.dataclass(frozen=True)
class Heat:
    """Frame after frame in one mode, from a cool start."""

    ms: float
    watts: float
    fps_start: float
    fps_end: float
    """Over the last two of `MINUTES`."""
    throttle_s: float | None
    """Seconds until the clock is lowered; None where it holds for `MINUTES`."""
    junction_c: float
    sustainable_fps: float | None
    """The frame rate that is never slowed down; None where there is none."""


@dataclasses.dataclass(frozen=True)
class Forecast:
    """What an inference takes in the mode asked for, and how every mode stands half an hour."""

    energy: Energy
    watts: float
    """Frame after frame, cool."""
    modes: dict[str, Heat]

    def to_json(self) -> dict[str, object]:
        """The groups energy_mj, power_w and thermal of `anfbuild predict --json`, below `energy`. Rounded: mJ and W to
        six digits after the point, frames a second and average W of a mode to three, degrees Celsius to one."""
        label = {"source": "predicted", "calibrated": False}
        parts = {name: round(value, 6) for name, value in dataclasses.asdict(self.energy).items()}
        return {
            "energy_mj": {"total": round(self.energy.total, 6), **parts, **label},
            "power_w": {"average": round(self.watts, 6), **label},
            "thermal": {name: _rounded(heat) for name, heat in self.modes.items()} | label,
        }


def forecast(activity: Activity, ms: float, performance_mode: str, background_w: float = 0.0) -> Forecast:
    """Forecast for an inference that takes `ms` milliseconds in `performance_mode`; RecipeError for an unknown mode.

    `background_w` is what else heats the phone, such as a GPU that draws a screen.
    """
    asked = mode_of(performance_mode)
    spent = {name: _spent(activity, ms * mode.likely / asked.likely, name) for name, mode in MODES.items()}
    heats = {name: _heat(each, ms * MODES[name].likely / asked.likely, background_w) for name, each in spent.items()}
    return Forecast(spent[performance_mode], heats[performance_mode].watts, heats)


def _spent(activity: Activity, ms: float, mode: str) -> Energy:
    """The energy at the mode's clock, the constants being those of the sustained one."""
    return energy(activity, ms, clock=MODES["sustained_high_performance"].likely / MODES[mode].likely)


def _heat(spent: Energy, ms: float, background_w: float) -> Heat:
    load = Load(ms, spent.dynamic, spent.static / ms, background_w)
    heated = run(load, minutes=MINUTES)
    return Heat(
        ms=ms,
        watts=spent.total / ms,
        fps_start=heated.fps_start,
        fps_end=heated.fps_end,
        throttle_s=heated.throttle_s,
        junction_c=heated.junction_c,
        sustainable_fps=sustainable_fps(load),
    )


def _rounded(heat: Heat) -> dict[str, float | None]:
    return {
        "fps_start": round(heat.fps_start, 3),
        "fps_30min": round(heat.fps_end, 3),
        "throttle_s": heat.throttle_s,
        "junction_c": round(heat.junction_c, 1),
        "average_w": round(heat.watts, 3),
        "sustainable_fps": None if heat.sustainable_fps is None else round(heat.sustainable_fps, 3),
    }
