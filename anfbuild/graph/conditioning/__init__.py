"""Float-equal rewrites that prepare a model for quantization, one a file: `run(model, ...) -> Conditioned`.

They change the model in place. Unlike the passes, which any model goes through, a recipe chooses them.
"""

from anfbuild.graph.conditioning.pipeline import condition
from anfbuild.graph.conditioning.result import Conditioned, Rewrite

__all__ = ["Conditioned", "Rewrite", "condition"]
