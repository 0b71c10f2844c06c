"""What rules judge a model for: the chip and the scheme of a recipe, in their words."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from anfbuild.engine.step import at
from anfbuild.errors import RecipeError
from anfbuild.quantization.schemes import AS_IS, FP16, SCHEMES

if TYPE_CHECKING:
    import onnx

    from anfbuild.graph.constraints import Aim, Inspection, Precision


@dataclasses.dataclass(frozen=True)
class Judged:
    """What the rules judge the source model for, and what of it is built."""

    soc: str = at("target.soc")
    soc_model: int = at("target.soc_model")
    vtcm_mb: int = at("target.vtcm_mb")
    scheme: str = at("quantization.scheme")
    shapes: dict[str, list[int]] = at("model.inputs.*.shape")
    outputs: list[str] | None = at("model.outputs")


def judge(config: Judged, converted: Path) -> tuple[onnx.ModelProto, Aim, Inspection]:
    """The source model that the step `convert` left in the folder `converted`, without large values; what the rules
    judge it for; and what they say. Raises as `aim_for` does."""
    from anfbuild.graph.constraints import inspect
    from anfbuild.graph.model import parse

    source = parse(converted / "source" / "model.onnx")
    aim = aim_for(config.soc_model, config.scheme, source, soc=config.soc, vtcm_mb=config.vtcm_mb)
    return source, aim, inspect(source, aim, config.shapes, config.outputs)


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
