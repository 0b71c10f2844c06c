"""The table of SoCs whose HTP the compiler can build for, and how to look one up."""

from __future__ import annotations

from dataclasses import dataclass

from anfbuild.errors import RecipeError, did_you_mean


@dataclass(frozen=True)
class Soc:
    """One chip: `soc_model` is the compiler's number for it, `arch` the Hexagon architecture ("v75").

    `vtcm_mb` is the on-chip memory of the HTP in MiB, `fp16` whether the compiler says that its HTP computes in fp16.
    """

    soc_model: int
    name: str
    arch: str
    vtcm_mb: int
    fp16: bool


# Source of every row: the log of a compile for that number by onnxruntime-qnn 2.7.0 (QNN 2.51), which states the
# chip's name, its minimum architecture, its VTCM size and whether it supports fp16.
SOCS: tuple[Soc, ...] = (
    Soc(30, "SM8350", "v68", 4, False),
    Soc(35, "SM7325", "v68", 2, False),
    Soc(37, "SC8280X", "v68", 4, False),
    Soc(39, "SA8295", "v68", 8, True),
    Soc(93, "QCS6490", "v68", 2, False),
    Soc(36, "SM8450", "v69", 8, True),
    Soc(41, "SM7450", "v69", 2, True),
    Soc(42, "SM8475", "v69", 8, True),
    Soc(53, "SXR2230P", "v69", 8, True),
    Soc(54, "SM7475", "v69", 4, False),
    Soc(43, "SM8550", "v73", 8, True),
    Soc(46, "SSG2115P", "v73", 2, False),
    Soc(52, "SA8255", "v73", 8, True),
    Soc(58, "SSG2125P", "v73", 2, False),
    Soc(60, "SC8380XP", "v73", 8, True),
    Soc(61, "SM7435", "v73", 2, False),
    Soc(64, "SM7550", "v73", 2, False),
    Soc(66, "QCS8550", "v73", 8, True),
    Soc(68, "SM8635", "v73", 4, False),
    Soc(70, "SM7675", "v73", 4, False),
    Soc(73, "SM7635", "v73", 2, False),
    Soc(77, "QCS9100", "v73", 8, True),
    Soc(78, "QCM6690", "v73", 2, False),
    Soc(85, "SM8735", "v73", 8, False),
    Soc(86, "SM7750", "v73", 4, False),
    Soc(57, "SM8650", "v75", 8, True),
    Soc(67, "SA8620P", "v75", 8, True),
    Soc(82, "QCS8300", "v75", 8, True),
    Soc(90, "QCS8625", "v75", 8, True),
    Soc(69, "SM8750", "v79", 8, True),
    Soc(75, "SXR2330P", "v79", 8, True),
    Soc(72, "SA8797", "v81", 16, True),
    Soc(87, "SM8850", "v81", 8, True),
    Soc(88, "SC8480XP", "v81", 8, True),
    Soc(95, "SAR2230P", "v81", 4, False),
    Soc(96, "SW6100", "v81", 4, False),
    Soc(97, "SM8845", "v81", 8, True),
    Soc(103, "SM8975", "v85", 12, True),
    Soc(113, "SM8950", "v85", 8, True),
)

# Chips that share one number with a row above: the compiler cannot tell them apart. Source: the chip list of
# google-ai-edge/LiteRT (Apache-2.0), vendors/qualcomm/core/schema/soc_table.h.
_ALIASES = {
    "SM8350P": 30,
    "QCM6490": 93,
    "SAR2130P": 46,
    "SA8630": 52,
    "SA8650": 52,
    "SA8775": 52,
    "SAR1130P": 58,
    "SA7255": 67,
    "SA8610": 67,
    "SA8620": 67,
    "QCS9075": 77,
    "QCS8275": 82,
    "SM8845P": 97,
    # The same chips as automotive boards call them. Source: Qualcomm AI Hub Models 0.65.0 (BSD-3-Clause),
    # devices_and_chipsets.yaml, and the compiler's log for the numbers there.
    "SA8295P": 39,
    "SA8255P": 52,
    "SA8775P": 52,
    "SA7255P": 67,
}

ARCHITECTURES: tuple[str, ...] = tuple(sorted({soc.arch for soc in SOCS}))

# What the compiler takes when it is told an architecture alone; it has no such chip for v85 (it falls to v68), so
# the first of that architecture stands there.
_DEFAULTS = {"v68": 30, "v69": 36, "v73": 43, "v75": 57, "v79": 69, "v81": 87, "v85": 103}

_BY_MODEL = {soc.soc_model: soc for soc in SOCS}
_BY_NAME = {soc.name: soc for soc in SOCS} | {name: _BY_MODEL[model] for name, model in _ALIASES.items()}


def find(soc: str | int, where: str | None = None) -> Soc:
    """The SoC of that name (any case) or of that `soc_model` number; `where` is the key that gives it.

    Raises RecipeError for one that is not in the table: older than Hexagon v68, or unknown to the compiler, which
    would take another chip without a word.
    """
    word = str(soc).strip().upper()
    found = _BY_MODEL.get(int(word)) if word.isascii() and word.isdigit() else _BY_NAME.get(word)
    if found is None:
        near = did_you_mean(word, _BY_NAME)
        raise RecipeError(
            f"unknown SoC {soc!r}",
            where=where,
            choices=[f"{row.name.lower()} ({row.soc_model})" for row in SOCS],
            remedy=f"{near}Name a chip with Hexagon {ARCHITECTURES[0]} or newer.",
        )
    return found


def default_soc(arch: str) -> Soc:
    """The SoC that stands for an architecture ("v75"). Raises RecipeError for one that is older than v68 or unknown."""
    if arch not in _DEFAULTS:
        raise RecipeError(
            f"unknown Hexagon architecture {arch!r}",
            choices=ARCHITECTURES,
            remedy=f"{did_you_mean(arch, ARCHITECTURES)}Older architectures have no HTP that the compiler builds for.",
        )
    return _BY_MODEL[_DEFAULTS[arch]]
