"""Fits what the operations of a compiled graph cost on a chip to measured latencies.

The model is that of `anfbuild.simulator.compiled`. A cost is that of `anfbuild.simulator.prior`, which is fitted to
many chips at once, times one factor for the chip, times one factor for the part of the chip that it is a cost of
(`compiled.GROUPS`): six parameters a chip. They are fitted as logarithms, so that no cost is negative, by damped least
squares on log ratios with a soft L1 loss. The factors of the parts are held near 1: ten measurements fix the chip's
factor well and move the rest a little.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import RecipeError
from anfbuild.qnn.features import Features
from anfbuild.simulator.compiled import BUSY, COSTS, GROUPS, latency_ms, works
from anfbuild.simulator.prior import PRIOR

Array = NDArray[np.float64]

_PART = np.array([index for index, names in enumerate(GROUPS.values()) for _ in names])
_IS_BUSY = np.array([name in BUSY for name in COSTS])
_STREAM = COSTS.index("stream_bytes")

_SPREAD = 0.35
"""How far a part of a chip is expected to leave the chip's own factor, as a log ratio."""
_OWN_SPREAD = 1.0
"""How far the costs common to all chips are expected to leave `START`, as a log ratio."""
_NOISE = 0.2
"""How far a measurement is expected to lie from the model, as a log ratio; farther off, it pulls less than its square.
"""
_STEPS = 40
LEAST = 4
"""Measurements that a fit takes."""

START = {
    **{"macs_8": 3.6e-11, "macs_16": 8.9e-11, "macs_float": 1.4e-10},
    **{"vector_bytes": 5e-9, "heavy_bytes": 6.7e-9, "float_bytes": 2.5e-9},
    **{"stream_bytes": 1.7e-8, "depth": 5e-4, "fixed": 0.04},
}
"""Where the fit of the common costs begins, and what it is held near: rough rates of a phone's chip, 28 T products a
second in 8 bits, 60 GB/s of DRAM, 150 to 400 GB/s of vector work, half a microsecond for one operation to wait for
another."""


@dataclasses.dataclass(frozen=True)
class Sample:
    """One measured latency (ms, burst) and the features of the graph compiled in that precision."""

    model: str
    family: str
    precision: str
    features: Features
    latency_ms: float


def fit(samples: Sequence[Sample], prior: Mapping[str, float] = PRIOR) -> dict[str, float]:
    """The costs of a chip from its measurements. Raises RecipeError for fewer than four, or one not above 0."""
    if len(samples) < LEAST:
        raise RecipeError(
            f"{len(samples)} measurements cannot be fitted", remedy=f"Measure {LEAST} models at least; 10 do better."
        )
    return _Joint([samples], prior, common=False).costs()[0]


def common(chips: Sequence[Sequence[Sample]], start: Mapping[str, float] = START) -> dict[str, float]:
    """The costs that several chips have in common, each chip having its own factors: what `PRIOR` is made of."""
    return _Joint(chips, start, common=True).costs()[-1]


def cross_validate(samples: Sequence[Sample], prior: Mapping[str, float] = PRIOR) -> list[float]:
    """For each sample, predicted over measured latency, by a fit that saw no model of its family."""
    ratios = [0.0] * len(samples)
    for family in sorted({sample.family for sample in samples}):
        costs = fit([sample for sample in samples if sample.family != family], prior)
        for index, sample in enumerate(samples):
            if sample.family == family:
                ratios[index] = latency_ms(sample.features, costs) / sample.latency_ms
    return ratios


class _Joint:
    """Costs of chips, fitted together. The parameters: [common costs], a factor a chip, a factor a chip and part."""

    def __init__(self, chips: Sequence[Sequence[Sample]], prior: Mapping[str, float], *, common: bool) -> None:
        samples = [sample for of_chip in chips for sample in of_chip]
        measured = np.array([sample.latency_ms for sample in samples])
        if not (np.isfinite(measured).all() and (measured > 0).all()):
            raise RecipeError("a measured latency is not a positive number")
        self._chips, self._parts = len(chips), len(GROUPS)
        self._own = len(COSTS) if common else 0
        self._prior = np.log([prior[name] for name in COSTS])
        self._work = np.array([works(sample.features) for sample in samples])
        self._measured = np.log(measured)
        self._chip = np.repeat(np.arange(len(chips)), [len(of_chip) for of_chip in chips])
        spreads = [np.full(self._own, _OWN_SPREAD), np.full(self._chips, np.inf)]
        self._hold = 1 / np.concatenate([*spreads, np.full(self._chips * self._parts, _SPREAD)])
        self._found = self._descend(self._begin())

    def costs(self) -> list[dict[str, float]]:
        """By chip; last, what they have in common, at the chips' geometric mean."""
        own, chip, part = self._split(self._found)
        rows = [own + chip[index] + part[index][_PART] for index in range(self._chips)]
        return [dict(zip(COSTS, np.exp(row).tolist(), strict=True)) for row in (*rows, np.mean(rows, axis=0))]

    def _split(self, parameters: Array) -> tuple[Array, Array, Array]:
        """(log costs in common [cost], log factors [chip], log factors [chip, part])"""
        own, chip, part = np.split(parameters, [self._own, self._own + self._chips])
        common = self._prior + own if self._own else self._prior
        return common, chip, part.reshape(self._chips, self._parts)

    def _begin(self) -> Array:
        """Each chip's factor is that of its middle measurement."""
        begin = np.zeros(len(self._hold))
        away = -self._residual(begin)[0]
        for index in range(self._chips):
            begin[self._own + index] = np.median(away[self._chip == index])
        return begin

    def _residual(self, parameters: Array) -> tuple[Array, Array]:
        """(log predicted over measured [sample], its slope by log cost [sample, cost])"""
        own, chip, part = self._split(parameters)
        ms = self._work * np.exp(own + (chip[:, None] + part[:, _PART])[self._chip])
        busy, stream = ms[:, _IS_BUSY].sum(axis=1), ms[:, _STREAM]
        both = np.hypot(busy, stream)
        total = both + ms[:, ~_IS_BUSY].sum(axis=1) - stream
        share = np.ones_like(ms)
        share[:, _IS_BUSY] = (busy / np.maximum(both, 1e-300))[:, None]
        share[:, _STREAM] = stream / np.maximum(both, 1e-300)
        return np.log(total) - self._measured, ms * share / total[:, None]

    def _slope(self, parameters: Array) -> tuple[float, Array, Array]:
        """(loss, gradient, curvature)"""
        residual, slope = self._residual(parameters)
        root = np.sqrt(1 + (residual / _NOISE) ** 2)
        held = parameters * self._hold
        loss = float((2 * (root - 1)).sum() + (held**2).sum())
        jacobian = self._jacobian(slope)
        weighted = jacobian / (root[:, None] * _NOISE**2)
        gradient = weighted.T @ residual + held * self._hold
        return loss, gradient, weighted.T @ jacobian + np.diag(self._hold**2)

    def _jacobian(self, slope: Array) -> Array:
        of_part = np.stack([slope[:, index == _PART].sum(axis=1) for index in range(self._parts)], axis=1)
        jacobian = np.zeros((len(slope), len(self._hold)))
        rows = np.arange(len(slope))
        jacobian[:, : self._own] = slope[:, : self._own]
        jacobian[rows, self._own + self._chip] = slope.sum(axis=1)
        first = self._own + self._chips + self._chip * self._parts
        for index in range(self._parts):
            jacobian[rows, first + index] = of_part[:, index]
        return jacobian

    def _descend(self, parameters: Array) -> Array:
        """Levenberg and Marquardt's steps."""
        damping = 1e-2
        loss, gradient, curvature = self._slope(parameters)
        for _ in range(_STEPS):
            damped = curvature + damping * np.diag(np.diag(curvature) + 1e-9)
            tried = parameters + np.clip(-np.linalg.solve(damped, gradient), -1.0, 1.0)
            found = self._slope(tried)
            if found[0] < loss:
                small = loss - found[0] < 1e-6 * loss
                parameters, (loss, gradient, curvature), damping = tried, found, damping / 4
                if small:
                    break
            else:
                damping *= 8
        return parameters
