"""The rewrites that a recipe asks for, in their order."""

from __future__ import annotations

import onnx

from anfbuild.graph.conditioning import clamp_masks
from anfbuild.graph.conditioning.result import Conditioned


def condition(model: onnx.ModelProto, *, mask_clamp: float | None) -> Conditioned:
    """Rewrite `model`, which the convert step made, in place. None leaves a rewrite out."""
    return clamp_masks.run(model, mask_clamp) if mask_clamp is not None else Conditioned()
