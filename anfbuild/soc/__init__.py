"""The chips: which SoC has which Hexagon architecture, how much VTCM, and what the compiler calls it.

Light on purpose (no numpy, no onnx): a recipe is refused for a wrong chip before anything heavy is imported.
"""

from anfbuild.soc.table import ARCHITECTURES, SOCS, Soc, default_soc, find

__all__ = ["ARCHITECTURES", "SOCS", "Soc", "default_soc", "find"]
