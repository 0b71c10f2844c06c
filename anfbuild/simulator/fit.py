"""Fits what the operations of a compiled graph cost on a chip to measured latencies.

The model is that of `anfbuild.simulator.compiled`. Costs are fitted as logarithms, so that none is negative, by damped
least squares on log ratios with a soft L1 loss, and are held near `PRIOR` times one factor for the chip: ten
measurements fix the factor well and move the rest a little.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import RecipeError
from anfbuild.qnn.features import Features
from anfbuild.simulator.compiled import COSTS, latency_ms, works

Array = NDArray[np.float64]

PRIOR = {
    "macs_8": 1 / 28e9,
    "macs_16": 2.5 / 28e9,
    "macs_float": 3.8 / 28e9,
    "matrix_bytes": 1 / 280e6,
    "vector_bytes": 1 / 72e6,
    "copy_bytes": 1 / 120e6,
    "heavy_bytes": 1 / 58e6,
    "dram_bytes": 1 / 60e6,
    "starts": 6e-5,
    "vector_ops": 4e-4,
    "dma_ops": 1.3e-4,
    "fixed": 0.04,
}
"""Costs of about a Snapdragon 8 Gen 3, the machine that the run list is played on."""

_SPREAD = 0.7
"""How far a cost may leave its prior before that counts as much as `_WEIGHT` measurements do: a factor of two."""
_WEIGHT = 0.3
_LOSS = 0.2
"""Log ratio above which a measurement pulls less than its square."""
_STEPS = 30
LEAST = 4
"""Measurements that a fit takes."""


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
    work = np.array([works(sample.features) for sample in samples])
    measured = np.array([sample.latency_ms for sample in samples])
    if not (np.isfinite(measured).all() and (measured > 0).all()):
        raise RecipeError("a measured latency is not a positive number")
    start = np.log([prior[name] for name in COSTS])
    start = start + np.median(np.log(measured / (work @ np.exp(start))))
    return dict(zip(COSTS, np.exp(_descend(work, np.log(measured), start)).tolist(), strict=True))


def _descend(work: Array, measured: Array, start: Array) -> Array:
    """Levenberg and Marquardt's steps from `start`, which the result is held near."""
    ridge = np.full(len(start), _WEIGHT / _SPREAD**2)
    costs, damping = start, 1e-2
    loss, gradient, curvature = _slope(work, measured, costs, start, ridge)
    for _ in range(_STEPS):
        step = -np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
        tried = costs + np.clip(step, -1.0, 1.0)
        found = _slope(work, measured, tried, start, ridge)
        if found[0] < loss:
            small = loss - found[0] < 1e-6 * loss
            costs, (loss, gradient, curvature), damping = tried, found, damping / 4
            if small:
                break
        else:
            damping *= 8
    return costs


def _slope(work: Array, measured: Array, costs: Array, start: Array, ridge: Array) -> tuple[float, Array, Array]:
    parts = work * np.exp(costs)
    total = parts.sum(axis=1)
    residual = np.log(total) - measured
    jacobian = parts / total[:, None]
    root = np.sqrt(1 + (residual / _LOSS) ** 2)
    away = costs - start
    loss = float((2 * _LOSS**2 * (root - 1)).sum() + (ridge * away**2).sum())
    weighted = jacobian / root[:, None]
    return loss, weighted.T @ residual + ridge * away, weighted.T @ jacobian + np.diag(ridge)


def cross_validate(samples: Sequence[Sample], prior: Mapping[str, float] = PRIOR) -> list[float]:
    """For each sample, predicted over measured latency, by a fit that saw no model of its family."""
    ratios = [0.0] * len(samples)
    for family in sorted({sample.family for sample in samples}):
        costs = fit([sample for sample in samples if sample.family != family], prior)
        for index, sample in enumerate(samples):
            if sample.family == family:
                ratios[index] = latency_ms(sample.features, costs) / sample.latency_ms
    return ratios


def pooled(samples_by_chip: Mapping[str, Sequence[Sample]], prior: Mapping[str, float] = PRIOR) -> dict[str, float]:
    """What the costs of several chips have in common: the geometric mean of their fits, each over its own factor."""
    logs = []
    for samples in samples_by_chip.values():
        found = np.log([fit(samples, prior)[name] for name in COSTS])
        logs.append(found - np.median(found - np.log([prior[name] for name in COSTS])))
    return dict(zip(COSTS, np.exp(np.mean(logs, axis=0)).tolist(), strict=True))
