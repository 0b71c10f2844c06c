"""Heat over time: a phone with two temperatures, and a governor that slows the chip down when one of them is too high.

    skin:      heat capacity * change of temperature = power - (skin - ambient) / resistance
    junction:  skin + power * resistance of the chip to the skin (seconds to settle, taken as settled)

Nothing of this was measured on a device: every figure made here is uncalibrated. What is taken from others:

- 42 °C is where a phone of 2025 throttles hard, and its battery, the slowest part, follows with 540 s (a developer's
  measurements on a Galaxy S25+); 45 °C on the skin is where touching hurts (Xie et al., Therminator, ISLPED 2014);
- voltage follows the clock near its upper end, so that the power of products grows with the cube of the clock (CMOS);
- a sustained mode that holds its clock for half an hour, and a burst that is slowed down after five to ten minutes, as
  an engineer's account of a segmentation model on a phone has it; the two constants of
  the enclosure are chosen to meet that, in `anfbuild.simulator.reference`.
"""

from __future__ import annotations

import dataclasses
import math

STEP_S = 1.0
"""Seconds between two decisions of the governor."""


@dataclasses.dataclass(frozen=True)
class Enclosure:
    """What a chip sits in. Temperatures in °C, resistances in K/W, heat capacity in J/K."""

    ambient_c: float = 25.0
    skin_k_w: float = 5.7
    """From the skin over the chip to the air: the sustained mode's 2.8 W stay a degree below the limit."""
    skin_j_k: float = 32.0
    """Of what gets warm with it: at this, the reference case's burst is slowed down after eight and a half minutes."""
    junction_k_w: float = 6.0
    """From the junction to the skin; an assumption, it moves no other figure unless the junction reaches its limit."""
    skin_limit_c: float = 42.0
    junction_limit_c: float = 95.0
    hysteresis_c: float = 2.0
    """So far below the limit the governor lets the clock up again."""

    def __post_init__(self) -> None:
        positive = (self.skin_k_w, self.skin_j_k, self.hysteresis_c)
        if not all(0 < value < math.inf for value in positive) or not 0 <= self.junction_k_w < math.inf:
            raise ValueError("resistances, heat capacity and hysteresis are finite and above zero")
        if not self.ambient_c + self.hysteresis_c < min(self.skin_limit_c, self.junction_limit_c) < math.inf:
            raise ValueError("the limits lie above the ambient temperature and the hysteresis")


@dataclasses.dataclass(frozen=True)
class Load:
    """Inferences one after the other at full clock, or so many a second.

    `ms` of one inference, `dynamic_mj` that it takes, `static_w` while it runs, `background_w` of all else that heats
    the enclosure (a GPU that draws a screen), `fps` to keep to or None for as many as there can be.
    """

    ms: float
    dynamic_mj: float
    static_w: float
    background_w: float = 0.0
    fps: float | None = None

    def __post_init__(self) -> None:
        if not 0 < self.ms < math.inf or (self.fps is not None and not 0 < self.fps < math.inf):
            raise ValueError("time and frame rate are finite and above zero")
        if not all(0 <= value < math.inf for value in (self.dynamic_mj, self.static_w, self.background_w)):
            raise ValueError("energy and power are finite and not negative")

    def rate(self, clock: float) -> float:
        """Inferences a second at `clock`, a share of the full one."""
        most = 1000.0 * clock / self.ms
        return most if self.fps is None else min(self.fps, most)

    def watts(self, clock: float) -> float:
        """Power at `clock`: the voltage follows it, and the energy of an inference falls with the voltage's square."""
        rate = self.rate(clock)
        busy = rate * self.ms / (1000.0 * clock)
        return self.background_w + rate * self.dynamic_mj * 1e-3 * clock**2 + busy * self.static_w * clock


@dataclasses.dataclass(frozen=True)
class Moment:
    """One second of a run."""

    seconds: float
    clock: float
    fps: float
    watts: float
    skin_c: float
    junction_c: float


@dataclasses.dataclass(frozen=True)
class Run:
    """A run from a cool start."""

    moments: tuple[Moment, ...]
    throttle_s: float | None
    """Seconds until the clock is first lowered; None where it never is."""

    @property
    def fps_start(self) -> float:
        """Inferences a second at the start."""
        return self.moments[0].fps

    @property
    def fps_end(self) -> float:
        """Mean inferences a second over the last two minutes: the governor swings."""
        last = self.moments[-int(120 / STEP_S) :]
        return math.fsum(moment.fps for moment in last) / len(last)

    @property
    def junction_c(self) -> float:
        """The highest junction temperature."""
        return max(moment.junction_c for moment in self.moments)


CLOCKS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""The governor's steps, shares of the mode's clock; an assumption."""
_PATIENCE_S = 10.0
"""Seconds between two steps of the governor; an assumption."""


def run(load: Load, enclosure: Enclosure | None = None, minutes: float = 30.0) -> Run:
    """Let `load` run in `enclosure` for so long; the temperature over each second is the exact solution."""
    enclosure = enclosure or Enclosure()
    decay = math.exp(-STEP_S / (enclosure.skin_k_w * enclosure.skin_j_k))
    skin, level, since, throttled = enclosure.ambient_c, 0, _PATIENCE_S, None
    moments = []
    for index in range(max(1, round(minutes * 60 / STEP_S))):
        clock, watts = CLOCKS[level], load.watts(CLOCKS[level])
        junction = skin + watts * enclosure.junction_k_w
        moments.append(Moment(index * STEP_S, clock, load.rate(clock), watts, skin, junction))
        steady = enclosure.ambient_c + watts * enclosure.skin_k_w
        skin = steady + (skin - steady) * decay
        junction = skin + watts * enclosure.junction_k_w
        since += STEP_S
        move = _move(skin, junction, enclosure) if since >= _PATIENCE_S else 0
        following = min(max(level + move, 0), len(CLOCKS) - 1)
        if following != level:
            if following > level and throttled is None:
                throttled = (index + 1) * STEP_S
            level, since = following, 0.0
    return Run(tuple(moments), throttled)


def _move(skin: float, junction: float, enclosure: Enclosure) -> int:
    """1 to slow down, -1 to speed up, 0 to stay."""
    room = min(enclosure.skin_limit_c - skin, enclosure.junction_limit_c - junction)
    if room < 0:
        return 1
    return -1 if room > enclosure.hysteresis_c else 0


def sustainable_watts(enclosure: Enclosure | None = None) -> float:
    """The power at which neither temperature ever passes its limit."""
    enclosure = enclosure or Enclosure()
    skin = (enclosure.skin_limit_c - enclosure.ambient_c) / enclosure.skin_k_w
    junction = (enclosure.junction_limit_c - enclosure.ambient_c) / (enclosure.skin_k_w + enclosure.junction_k_w)
    return min(skin, junction)


def sustainable_fps(load: Load, enclosure: Enclosure | None = None) -> float | None:
    """The most inferences a second, at full clock, that are never slowed down; None where even none is too much."""
    spare = sustainable_watts(enclosure) - load.background_w
    if spare <= 0:
        return None
    each_j = (load.dynamic_mj + load.static_w * load.ms) * 1e-3
    most = 1000.0 / load.ms
    return most if each_j <= 0 else min(most, spare / each_j)
