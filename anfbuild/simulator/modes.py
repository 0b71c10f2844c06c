"""Performance modes of the HTP: how much longer an inference takes than in burst, the mode that was measured.

There is no table of modes for vision models in public. Two figures are used:
- burst to sustained_high_performance: 5 to 8 % slower, for a vision model on a phone (an engineer's account of
  deploying a segmentation model with Qualcomm's tools, in Chinese: a practice figure, without a named measurement);
- the steps below: tokens a second of one language model's decode on a Snapdragon X Elite: burst 9.21,
  sustained_high_performance 9.15, balanced 8.74, power_saver 6.71. Decode is bound by memory, so that a model bound by
  the matrix engine may lose more.
"""

from __future__ import annotations

import dataclasses

from anfbuild.errors import RecipeError, did_you_mean

_TOKENS_S = {"burst": 9.21, "sustained_high_performance": 9.15, "balanced": 8.74, "power_saver": 6.71}
_SUSTAINED = (1.05, 1.065, 1.08)


@dataclasses.dataclass(frozen=True)
class Mode:
    """Time of an inference over its time in burst: the least, the likely and the most."""

    name: str
    low: float
    likely: float
    high: float
    cited: bool
    """True where the figure was given for vision models; False where it is carried over from a language model."""


def _below_sustained(name: str) -> Mode:
    """The account's step to the sustained mode times the language model's step from there."""
    ratio = _TOKENS_S["sustained_high_performance"] / _TOKENS_S[name]
    _, likely, high = _SUSTAINED
    return Mode(name, _TOKENS_S["burst"] / _TOKENS_S[name], likely * ratio, high * ratio, cited=False)


MODES = {
    "burst": Mode("burst", 1.0, 1.0, 1.0, cited=True),
    "sustained_high_performance": Mode("sustained_high_performance", *_SUSTAINED, cited=True),
    "balanced": _below_sustained("balanced"),
    "power_saver": _below_sustained("power_saver"),
}


def mode_of(name: str) -> Mode:
    """The mode of that name; RecipeError with the choices where there is none."""
    if name not in MODES:
        raise RecipeError(
            f"{did_you_mean(name, MODES)}there is no performance mode {name!r}",
            where="performance.mode",
            choices=MODES,
            remedy="Set performance.mode to one of these.",
        )
    return MODES[name]
