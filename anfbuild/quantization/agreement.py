"""How far two runs of one quantized model agree, in parts of the range of its own output encoding."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np

from anfbuild.errors import StepError
from anfbuild.quantization.encodings import Encodings


@dataclasses.dataclass(frozen=True)
class Agreement:
    """The output tensor that agrees least, over all samples, in LSB: 1/256 of the range of that tensor's encoding.

    In 8 bits that is one step; in 16 bits it is 256, so that schemes compare and one limit serves them all.

    `rms_lsb` is the root mean square difference, `max_lsb` the greatest. The two units round differently by one step in
    some nodes; a steep network makes a few large differences of that at edges, so that the maximum says more about the
    network than about the units, and the mean square is what a gate can hold. `sqnr_db` is 10 log10 of the signal's
    energy over the difference's, None when there is no difference.
    """

    tensor: str
    rms_lsb: float
    max_lsb: float
    sqnr_db: float | None


def agreement(
    reference: Sequence[Mapping[str, np.ndarray]], other: Sequence[Mapping[str, np.ndarray]], encodings: Encodings
) -> Agreement:
    """Compare `other` with `reference`, sample by sample: output name -> float array of any shape.

    Raises StepError when an output is missing, has another shape, or holds a value that is no number.
    """
    if not reference:
        raise StepError("there is no sample to compare", remedy="Set emulate.samples to 1 or more.")
    found = [
        _tensor(name, [run[name] for run in reference], [run.get(name) for run in other], encodings)
        for name in sorted(reference[0])
    ]
    return max(found, key=lambda item: (item.rms_lsb, item.max_lsb))


def _tensor(
    name: str, reference: Sequence[np.ndarray], other: Sequence[np.ndarray | None], encodings: Encodings
) -> Agreement:
    signal = noise = greatest = 0.0
    values = 0
    for expected, value in zip(reference, other, strict=True):
        if value is None or value.shape != expected.shape:
            shape = "nothing" if value is None else str(value.shape)
            raise StepError(f"output {name!r} should be {expected.shape}, but is {shape}")
        difference = value.astype(np.float64) - expected.astype(np.float64)
        if not np.isfinite(difference).all():
            raise StepError(f"output {name!r} holds values that are no numbers")
        greatest = max(greatest, float(np.abs(difference).max(initial=0.0)))
        values += difference.size
        signal += float(np.square(expected, dtype=np.float64).sum())
        noise += float(np.square(difference).sum())
    encoding = encodings.activations.get(name)
    # An integer output has no encoding, and steps of one.
    step = 1.0 if encoding is None else encoding.scale[0] * 2.0 ** (8 * np.dtype(encoding.dtype).itemsize - 8)
    sqnr = None if noise == 0 else 10 * math.log10(signal / noise) if signal else -math.inf
    return Agreement(name, math.sqrt(noise / max(values, 1)) / step, greatest / step, sqnr)
