"""What rules judge a model for: the chip and the scheme of a recipe, in their words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anfbuild.errors import RecipeError
from anfbuild.quantization.schemes import AS_IS, FP16, SCHEMES

if TYPE_CHECKING:
    import onnx

    from anfbuild.graph.constraints import Aim, Precision


def aim_for(
    soc_model: int, scheme: str, model: onnx.ModelProto, *, soc: str | None = None, vtcm_mb: int | None = None
) -> Aim:
    """The chip of that number, and the scheme; `soc` is how messages call the chip, `vtcm_mb` what it is given (MiB).

    Raises RecipeError for an unknown chip or scheme, StepError for `as_is` where `model` brings no encodings.
    """
    from anfbuild.graph.constraints import Aim
    from anfbuild.soc import find

    chip = find(soc_model, where="target.soc_model")
    vtcm = chip.vtcm_mb if vtcm_mb is None else vtcm_mb
    return Aim(chip.name.lower() if soc is None else soc, chip.arch, vtcm, chip.fp16, _precision(scheme, model))


def _precision(scheme: str, model: onnx.ModelProto) -> Precision:
    """Its bits; of `as_is`, those that the model brings."""
    from anfbuild.graph.constraints import FLOAT16, Precision

    if scheme == FP16:
        return FLOAT16
    if scheme == AS_IS:
        from anfbuild.quantization.as_is import widths

        return Precision(AS_IS, *widths(model), as_is=True)
    found = SCHEMES.get(scheme)
    if found is None:
        raise RecipeError(
            f"unknown quantization scheme {scheme!r}", where="quantization", choices=[*SCHEMES, AS_IS, FP16]
        )
    return Precision(found.name, found.activation_bits, found.weight_bits, found.per_channel)
