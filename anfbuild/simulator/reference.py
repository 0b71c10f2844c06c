"""`snapdragon_reference`: one published example, put through the same energy and heat as every prediction.

An engineer's account (in Chinese, unnamed phone) of a portrait segmentation at 960x960 in int8: CPU 78 ms and 5.2 W,
GPU 23 ms and 4.1 W, the HTP 13 ms and 2.8 W; inputs and outputs in shared memory take a frame from 12 to 9 ms; burst
is 5 to 8 % faster than the sustained mode and is slowed down after five to ten minutes. These are FITTED: there are as
many constants as figures, here and in the enclosure of `anfbuild.simulator.thermal`, so that meeting them proves
nothing but that the equations can. That the sustained mode holds is among them. One figure is NOT in the fit and stands
beside it: after five minutes the CPU's path has been slowed down.

The account gives neither products nor bytes of its model: they are assumed, within what such networks have.
"""

from __future__ import annotations

import dataclasses

from anfbuild.simulator.energy import PRODUCT_PJ, STATIC_W, Activity, Constants, Energy, energy
from anfbuild.simulator.modes import MODES
from anfbuild.simulator.thermal import Load, Run, run

MACS = 39e9
"""Assumed: with it the HTP's energy a product is the one of `anfbuild.simulator.energy`."""
UNFUSED_BYTES = 300e6
"""Assumed: every value written to DRAM and read again once."""
SAVED = 0.6
"""Share of them that fusion keeps on chip; the account says 0.5 to 0.7."""
FRAME_BYTES = 960 * 960 * (3 + 1) * 4
"""Input and output in 32-bit float."""


@dataclasses.dataclass(frozen=True)
class Unit:
    """A unit of the reference chip: what it was fitted with, and the account's figures."""

    name: str
    macs_s: float
    """Products a second, fitted to the latency."""
    constants: Constants
    """`product_pj` is fitted to the power."""
    dram_bytes: float
    said_ms: float
    said_w: float

    @property
    def ms(self) -> float:
        """Milliseconds of a frame."""
        return MACS / self.macs_s * 1e3

    @property
    def energy(self) -> Energy:
        """Energy of a frame."""
        return energy(Activity({"w8a8": MACS}, self.dram_bytes), self.ms, self.constants)

    @property
    def watts(self) -> float:
        """Power, frame after frame."""
        return self.energy.total / self.ms

    def heat(self, minutes: float = 30.0, clock: float = 1.0) -> Run:
        """So many minutes of frame after frame; `clock` over that of the sustained mode."""
        ms = self.ms / clock
        spent = energy(Activity({"w8a8": MACS}, self.dram_bytes), ms, self.constants, clock)
        return run(Load(ms, spent.dynamic, spent.static / ms), minutes=minutes)


def _unit(name: str, macs_s: float, product_pj: float, static_w: float, dram_bytes: float, ms: float, w: float) -> Unit:
    constants = Constants(product_pj={"w8a8": product_pj, "float": product_pj}, static_w=static_w)
    return Unit(name, macs_s, constants, dram_bytes, ms, w)


UNITS = (
    _unit("CPU", 0.5e12, 8.15, 0.9, UNFUSED_BYTES, 78.0, 5.2),
    _unit("GPU", 1.696e12, 1.41, 0.9, UNFUSED_BYTES, 23.0, 4.1),
    _unit("HTP", 3.0e12, PRODUCT_PJ["w8a8"], STATIC_W, UNFUSED_BYTES * (1 - SAVED), 13.0, 2.8),
)
COPY_BYTES_S = 4.9e9
"""Bytes a second of the copy into and out of the HTP's memory, fitted to 12 ms with it and 9 ms without."""


def burst_clock() -> float:
    """Clock of burst over that of the sustained mode."""
    return MODES["sustained_high_performance"].likely


def transfer_ms(zero_copy: bool) -> float:
    """Milliseconds that copying input and output takes; none where they lie in shared memory."""
    return 0.0 if zero_copy else FRAME_BYTES / COPY_BYTES_S * 1e3
