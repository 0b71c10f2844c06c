"""What a chip can do, read from a recipe's target and checked."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from anfbuild.errors import RecipeError
from anfbuild.simulator.compiled import COSTS

PRECISIONS = ("w8a8", "w8a16", "float")
"""The precisions that public measurements exist for."""


@dataclasses.dataclass(frozen=True)
class Rates:
    """The figures of one chip that the cost model reads."""

    vtcm_bytes: float
    """On-chip memory of the HTP."""
    macs_per_ms: float
    """Padded multiply-accumulates of the matrix engine in w8a8."""
    bytes_per_ms: float
    """Stream from DRAM."""
    fixed_ms: float
    """Time of an inference that does nothing: the call to the HTP and back."""
    estimate: bool
    """True where the three figures above are another chip's."""
    fitted: frozenset[str]
    """The precisions whose measurements on this very chip went into `compiled`, and, where they are not an estimate,
    into the figures above."""
    compiled: Mapping[str, float]
    """Costs of compiled work (`anfbuild.simulator.compiled.COSTS`); empty where there are none."""


def read_rates(target: Mapping[str, object]) -> Rates:
    """Rates from `target.vtcm_mb` (MiB, as the compiler counts) and `target.rates`: conv_tmac_s (10^12 MAC/s),
    weight_gb_s (10^9 bytes/s), fixed_ms, estimate (absent means False), fitted (some of `PRECISIONS`; absent means
    none) and compiled.

    Raises RecipeError naming the key that is missing, unknown, or not a positive finite number.
    """
    rates = target.get("rates")
    if not isinstance(rates, Mapping):
        raise _refusal("target.rates", rates, "a mapping with conv_tmac_s, weight_gb_s and fixed_ms")
    known = {"conv_tmac_s", "weight_gb_s", "fixed_ms", "estimate", "fitted", "compiled"}
    for key in rates:
        if key not in known:
            raise RecipeError(f"unknown key {key!r}", where=f"target.rates.{key}", choices=sorted(known))
    fitted = rates.get("fitted", ())
    if not isinstance(fitted, list | tuple) or any(precision not in PRECISIONS for precision in fitted):
        raise _refusal("target.rates.fitted", fitted, f"a list of some of {', '.join(PRECISIONS)}")
    estimate = rates.get("estimate", False)
    if not isinstance(estimate, bool):
        raise _refusal("target.rates.estimate", estimate, "true or false")
    return Rates(
        vtcm_bytes=_positive(target, "vtcm_mb", "target.vtcm_mb") * 2**20,
        macs_per_ms=_positive(rates, "conv_tmac_s", "target.rates.conv_tmac_s") * 1e9,
        bytes_per_ms=_positive(rates, "weight_gb_s", "target.rates.weight_gb_s") * 1e6,
        fixed_ms=_positive(rates, "fixed_ms", "target.rates.fixed_ms"),
        estimate=estimate,
        fitted=frozenset(fitted),
        compiled=_compiled(rates.get("compiled") or {}),
    )


def _compiled(costs: object) -> dict[str, float]:
    if not isinstance(costs, Mapping):
        raise _refusal("target.rates.compiled", costs, "a mapping of costs")
    if costs and set(costs) != set(COSTS):
        wrong = sorted(set(costs) ^ set(COSTS))[0]
        raise RecipeError(
            f"the cost {wrong!r} is {'unknown' if wrong in costs else 'missing'}",
            where=f"target.rates.compiled.{wrong}",
            choices=COSTS,
            remedy="Give all of these, or none.",
        )
    return {name: _positive(costs, name, f"target.rates.compiled.{name}") for name in costs}


def _positive(values: Mapping[str, object], key: str, where: str) -> float:
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise _refusal(where, value, "a number above zero")
    return float(value)


def _refusal(where: str, value: object, wanted: str) -> RecipeError:
    found = "is missing" if value is None else f"is {value!r}"
    return RecipeError(
        f"{where} {found}, and the cost model needs {wanted}",
        where=where,
        remedy="Choose a target that anfbuild ships, or give the figure in your own conf/target file.",
    )
