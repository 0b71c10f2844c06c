"""What a model is judged for: a chip and a precision."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Precision:
    """The bits that a quantization scheme gives; `quantized` False: half precision throughout; `as_is`: the model
    brings them, and these are those of most of its values."""

    name: str
    activation_bits: int
    weight_bits: int
    per_channel: bool = False
    quantized: bool = True
    as_is: bool = False


FLOAT16 = Precision("fp16", 16, 16, quantized=False)
"""The model as it is, computed in half precision."""


@dataclasses.dataclass(frozen=True)
class Aim:
    """The chip and the precision."""

    target: str
    """How messages call the chip."""
    arch: str
    """Its Hexagon architecture, "v75"."""
    vtcm_mb: int
    """On-chip memory of its HTP, MiB."""
    fp16: bool
    """Whether its HTP computes in half precision."""
    precision: Precision

    @property
    def generation(self) -> int:
        """75 of "v75"."""
        return int(self.arch.removeprefix("v"))

    @property
    def vtcm_bytes(self) -> int:
        """On-chip memory of its HTP, bytes."""
        return self.vtcm_mb * 2**20
