"""What the compiler is told, checked against our own tables first: it takes wrong values without a word.

Light: no numpy, no onnx, no vendor code.
"""

from __future__ import annotations

from dataclasses import dataclass

from anfbuild.errors import RecipeError, did_you_mean
from anfbuild.soc import ARCHITECTURES, Soc, find

PROVIDER = "QNNExecutionProvider"
CPU_PROVIDER = "CPUExecutionProvider"

# The values of `htp_performance_mode`. Source: the QNN execution provider's documentation (onnxruntime.ai).
PERFORMANCE_MODES: tuple[str, ...] = (
    "balanced",
    "burst",
    "default",
    "extreme_power_saver",
    "high_performance",
    "high_power_saver",
    "low_balanced",
    "low_power_saver",
    "power_saver",
    "sustained_high_performance",
)

# The values of `htp_graph_finalization_optimization_mode`: 0 is the compiler's default, 3 searches longest.
OPTIMIZATIONS: tuple[int, ...] = (0, 1, 2, 3)


@dataclass(frozen=True)
class Options:
    """The target of a compile. `vtcm_mb` None leaves all of the chip's VTCM to the graph (MiB).

    `performance_mode` does not change the context binary; it is the mode that a session on a device asks for. `fp16`
    lets a float model compute in float16, without which the HTP takes none.
    """

    soc_model: int
    arch: str
    vtcm_mb: int | None = None
    performance_mode: str = "default"
    optimization: int = 0
    fp16: bool = False

    def check(self) -> Soc:
        """The chip that these options describe; RecipeError for the first value that cannot be."""
        soc = find(self.soc_model, where="target.soc_model")
        if self.arch not in ARCHITECTURES:
            raise RecipeError(
                f"unknown Hexagon architecture {self.arch!r}",
                where="target.arch",
                choices=ARCHITECTURES,
                remedy=f"{did_you_mean(str(self.arch), ARCHITECTURES)}{soc.name} has {soc.arch}.",
            )
        if self.arch != soc.arch:
            raise RecipeError(
                f"arch {self.arch} is not that of {soc.name} (soc_model {soc.soc_model})",
                where="target.arch",
                choices=[soc.arch],
                remedy=f"Write arch {soc.arch}, or choose another SoC.",
            )
        self._check_vtcm(soc)
        if self.performance_mode not in PERFORMANCE_MODES:
            raise RecipeError(
                f"unknown performance mode {self.performance_mode!r}",
                where="performance.mode",
                choices=PERFORMANCE_MODES,
                remedy=did_you_mean(str(self.performance_mode), PERFORMANCE_MODES).strip() or None,
            )
        if isinstance(self.optimization, bool) or self.optimization not in OPTIMIZATIONS:
            raise RecipeError(f"unknown optimization level {self.optimization!r}", choices=OPTIMIZATIONS)
        if self.fp16 and not soc.fp16:
            raise RecipeError(
                f"the HTP of {soc.name} does not compute in float16",
                where="quantization.scheme",
                remedy="Choose a quantized scheme, or another chip.",
            )
        return soc

    def _check_vtcm(self, soc: Soc) -> None:
        if self.vtcm_mb is None:
            return
        whole = isinstance(self.vtcm_mb, int) and not isinstance(self.vtcm_mb, bool)
        if not whole or not 1 <= self.vtcm_mb <= soc.vtcm_mb:
            raise RecipeError(
                f"vtcm_mb {self.vtcm_mb} is not possible: {soc.name} (soc_model {soc.soc_model}) has "
                f"{soc.vtcm_mb} MB of VTCM",
                where="target.vtcm_mb",
                choices=range(1, soc.vtcm_mb + 1),
            )

    def provider_options(self) -> dict[str, str]:
        """These options in the words of the QNN execution provider.

        `htp_arch` is left out: it follows from the SoC, and the compiler ignores it when a SoC is given.
        """
        options = {
            "soc_model": str(self.soc_model),
            "htp_performance_mode": self.performance_mode,
            "htp_graph_finalization_optimization_mode": str(self.optimization),
        }
        if self.fp16:
            options["enable_htp_fp16_precision"] = "1"
        if self.vtcm_mb is not None:
            options["vtcm_mb"] = str(self.vtcm_mb)
        return options
