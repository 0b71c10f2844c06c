"""Energy of one inference: what is computed, what is moved, and what the chip draws meanwhile.

    energy = products * energy a product + bytes of DRAM * energy a byte + bytes on chip * energy a byte
             + static power * time

No energy of an inference on an HTP is public, so that every figure made here is uncalibrated. The constants lie within
what was published for like silicon (a byte is an eighth of the 64 bits that the tables give):

- Jouppi et al., "Ten Lessons From Three Generations Shaped Google's TPUv4i", ISCA 2021, table of operation energies at
  7 nm: 8-bit multiply 0.07 pJ, 32-bit integer add 0.03 pJ, half precision multiply 0.34 pJ and add 0.16 pJ, 1 MB SRAM
  14 pJ, HBM2 250 to 450 pJ, DDR4 1300 pJ a 64-bit access;
- Horowitz, "Computing's energy problem", ISSCC 2014, at 45 nm: 8-bit multiply 0.2 pJ, 32-bit add 0.1 pJ, 1 MB cache
  100 pJ, DRAM 1300 to 2600 pJ a 64-bit access.

An array spends several times the product itself on registers, wires and control.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

PRODUCT_PJ = {"w8a8": 0.45, "w8a16": 0.95, "float": 1.6}
"""pJ a multiply-accumulate of the matrix engine at nominal voltage. The sources' range for the arithmetic alone, 7 to
45 nm: 0.1 to 0.3 in 8 bits, 0.5 to 1.5 in half precision; w8a16 is taken between."""
DRAM_PJ_BYTE = 60.0
"""pJ a byte, low-power DRAM, its interface and its controller: between HBM2's 31 and DDR4's 163."""
ON_CHIP_PJ_BYTE = 3.0
"""pJ a byte of the HTP's own memory: between 1.75 (7 nm) and 12.5 (45 nm), several MB being farther than one."""
STATIC_W = 0.9
"""W of the HTP, its clock tree, the memory controller and DRAM refresh while an inference runs; an assumption."""


@dataclasses.dataclass(frozen=True)
class Constants:
    """What the energy of a unit is made of, at the clock of `sustained_high_performance`."""

    product_pj: Mapping[str, float] = dataclasses.field(default_factory=lambda: dict(PRODUCT_PJ))
    dram_pj_byte: float = DRAM_PJ_BYTE
    on_chip_pj_byte: float = ON_CHIP_PJ_BYTE
    static_w: float = STATIC_W


@dataclasses.dataclass(frozen=True)
class Activity:
    """What one inference does: products by precision, bytes to and from DRAM and the chip's own memory."""

    macs: Mapping[str, float]
    dram_bytes: float
    on_chip_bytes: float = 0.0


@dataclasses.dataclass(frozen=True)
class Energy:
    """mJ of one inference, by what they are spent on."""

    products: float
    dram: float
    on_chip: float
    static: float

    @property
    def dynamic(self) -> float:
        """mJ that an inference takes whatever its time."""
        return self.products + self.dram + self.on_chip

    @property
    def total(self) -> float:
        """mJ of one inference."""
        return self.dynamic + self.static


def energy(activity: Activity, ms: float, constants: Constants | None = None, clock: float = 1.0) -> Energy:
    """mJ of an inference that takes `ms` milliseconds.

    `clock` is the clock over that of `sustained_high_performance`. Voltage is taken to follow the clock, so that the
    energy of a product grows with its square and a static watt in proportion; DRAM has a supply of its own. A precision
    without a constant is costed as float. Raises ValueError for a negative or endless quantity.
    """
    constants = constants or Constants()
    quantities = (*activity.macs.values(), activity.dram_bytes, activity.on_chip_bytes, ms)
    if not all(math.isfinite(value) and value >= 0 for value in quantities) or not 0 < clock < math.inf:
        raise ValueError("work, time and clock are finite and not negative")
    fallback = constants.product_pj["float"]
    products = math.fsum(macs * constants.product_pj.get(kind, fallback) for kind, macs in activity.macs.items())
    return Energy(
        products=products * clock**2 * 1e-9,
        dram=activity.dram_bytes * constants.dram_pj_byte * 1e-9,
        on_chip=activity.on_chip_bytes * constants.on_chip_pj_byte * clock**2 * 1e-9,
        static=constants.static_w * clock * ms,  # W * ms = mJ
    )
