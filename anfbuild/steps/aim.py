"""What rules judge a model for: the chip and the scheme of a recipe, in their words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from anfbuild.quantization.schemes import AS_IS, FP16, find

if TYPE_CHECKING:
    import onnx

    from anfbuild.graph.constraints import Aim, Precision


def aim_for(soc: str, soc_model: int, vtcm_mb: int, scheme: str, model: onnx.ModelProto) -> Aim:
    """The chip of that number, which messages call `soc`, with `vtcm_mb` MiB on chip, and the scheme for `model`.

    Raises RecipeError for an unknown chip or scheme, StepError where a model has no encodings that it could keep.
    """
    from anfbuild import soc as chips
    from anfbuild.graph.constraints import Aim

    chip = chips.find(soc_model, where="target.soc_model")
    return Aim(soc, chip.arch, vtcm_mb, chip.fp16, _precision(scheme, model))


def _precision(scheme: str, model: onnx.ModelProto) -> Precision:
    """The bits of a scheme; of `as_is` those that the model brings."""
    from anfbuild.graph.constraints import FLOAT16, Precision

    if scheme == FP16:
        return FLOAT16
    if scheme == AS_IS:
        from anfbuild.quantization.as_is import widths

        return Precision(AS_IS, *widths(model), as_is=True)
    found = find(scheme)
    return Precision(found.name, found.activation_bits, found.weight_bits, found.per_channel)
