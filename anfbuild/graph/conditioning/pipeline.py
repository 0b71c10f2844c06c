"""The rewrites that a recipe asks for, in their order."""

from __future__ import annotations

import onnx

from anfbuild.graph.conditioning import clamp_masks, equalize
from anfbuild.graph.conditioning.result import Conditioned


def condition(model: onnx.ModelProto, *, mask_clamp: float | None, equalization: bool = False) -> Conditioned:
    """Rewrite `model`, which the convert step made, in place. None and False leave a rewrite out."""
    done = clamp_masks.run(model, mask_clamp) if mask_clamp is not None else Conditioned()
    evened = equalize.run(model) if equalization else Conditioned()
    return Conditioned(done.rewrites + evened.rewrites, done.notes + evened.notes)
