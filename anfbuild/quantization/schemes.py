"""Quantization schemes: the bits that activations and weights get. Light: read before any model is loaded."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anfbuild.errors import RecipeError, did_you_mean

_INT16_WEIGHTS_FROM = 73
"""Older HTPs refuse 16-bit weights (seen with QNN 2.51: v68 and v69 reject int16 weights, v73 and newer take them)."""


@dataclass(frozen=True)
class Scheme:
    """Activations are unsigned and asymmetric, per tensor; weights are per tensor or per output channel."""

    name: str
    activation_bits: int
    weight_bits: int
    per_channel: bool


SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("int8", 8, 8, per_channel=False),
        Scheme("int8_per_channel", 8, 8, per_channel=True),
        Scheme("a16w8", 16, 8, per_channel=False),
        Scheme("a16w8_per_channel", 16, 8, per_channel=True),
        Scheme("a16w16", 16, 16, per_channel=False),
    )
}


AS_IS = "as_is"
"""No scheme of ours: a model that is quantized already keeps its encodings."""
FP16 = "fp16"
"""No quantization: the HTP computes the float model in half precision. It is costed, and not built yet."""


def find(name: str) -> Scheme:
    """The scheme called `name`. Raises RecipeError with the choices when there is none."""
    if name not in SCHEMES:
        choices = [*SCHEMES, AS_IS]
        raise RecipeError(
            f"unknown quantization scheme {name!r}",
            where="quantization.scheme",
            choices=choices,
            remedy=f"{did_you_mean(name, choices)}Set quantization.scheme to one of the choices.",
        )
    return SCHEMES[name]


def check(scheme: str, arch: str) -> Scheme | None:
    """The scheme, when the HTP architecture `arch` ("v73") can run it; None for `as_is`, whose bits the model knows.

    Raises RecipeError for an unknown scheme, an architecture that is not of the form vNN, and a scheme that the
    architecture cannot run, naming the nearest one that it can.
    """
    found = None if scheme == AS_IS else find(scheme)
    match = re.fullmatch(r"v(\d+)", arch)
    if match is None:
        raise RecipeError(
            f"not an HTP architecture: {arch!r}", where="target.arch", remedy="Set target.arch to a value such as v73."
        )
    if found is not None and found.weight_bits == 16 and int(match[1]) < _INT16_WEIGHTS_FROM:
        possible = [name for name, other in SCHEMES.items() if other.weight_bits == 8]
        raise RecipeError(
            f"quantization scheme {scheme!r} needs HTP v{_INT16_WEIGHTS_FROM} or newer, the target has {arch}: "
            "older ones refuse 16-bit weights",
            where="quantization.scheme",
            choices=possible,
            remedy="Set quantization.scheme to 'a16w8_per_channel', the nearest that the target can run.",
        )
    return found
