"""The names of the range estimators. Light: an estimator is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from anfbuild import plugins
from anfbuild.errors import RecipeError, did_you_mean

if TYPE_CHECKING:
    from anfbuild.quantization.histogram import TensorStatistics

    Estimator = Callable[[TensorStatistics, int, float], tuple[float, float]]
    """(statistics of one tensor, bits, percentile) -> (lo, hi), lo ≤ 0 ≤ hi, inside the tensor's extremes and zero."""


def _minmax() -> Estimator:
    from anfbuild.quantization.estimators.minmax import minmax

    return minmax


def _percentile() -> Estimator:
    from anfbuild.quantization.estimators.percentile import percentile

    return percentile


def _mse() -> Estimator:
    from anfbuild.quantization.estimators.mse import mse

    return mse


ESTIMATORS: dict[str, Callable[[], Estimator]] = {"minmax": _minmax, "percentile": _percentile, "mse": _mse}
"""Name -> a function that imports the estimator."""


def get(name: str) -> Estimator:
    """The estimator `name`, of ours or installed as an entry point of the group `anfbuild.estimators`."""
    if name in ESTIMATORS:
        return ESTIMATORS[name]()
    estimator: Estimator = plugins.load(plugins.ESTIMATORS, name)
    return estimator


def check(name: str, percentile: float) -> None:
    """Raises RecipeError when there is no estimator `name`, or `percentile` (of the mass kept) is not in (50, 100]."""
    known = [*ESTIMATORS, *plugins.installed(plugins.ESTIMATORS)]
    if name not in known:
        raise RecipeError(
            f"unknown range estimator {name!r}",
            where="calibration.estimator",
            choices=known,
            remedy=f"{did_you_mean(name, known)}Set calibration.estimator to one of the choices.",
        )
    if not 50 < percentile <= 100:
        raise RecipeError(
            f"calibration.percentile is {percentile}, but must be over 50 and at most 100",
            where="calibration.percentile",
            remedy="Set calibration.percentile to a value such as 99.99.",
        )
