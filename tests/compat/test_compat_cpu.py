"""The class of a CPU is the highest whose features it all has."""

from __future__ import annotations

import pytest

from anfbuild.compat.cpu import classify, cpu_class

V2 = ("SSE42", "SSSE3", "POPCNT")
V3 = (*V2, "AVX2", "FMA3", "F16C")
V4 = (*V3, "AVX512F", "AVX512CD", "AVX512_SKX")


@pytest.mark.parametrize(
    ("machine", "features", "expected"),
    [
        ("x86_64", (), "x86-64"),
        ("x86_64", V2, "x86-64-v2"),
        ("AMD64", V3, "x86-64-v3"),
        ("x86_64", (*V3, "AVX512F"), "x86-64-v3"),
        ("x86_64", V4, "x86-64-v4"),
        ("x86_64", (*V4, "AVX512_SPR"), "x86-64-v4"),
        ("aarch64", ("ASIMD",), "aarch64"),
        ("ARM64", ("ASIMD", "ASIMDHP"), "aarch64-fp16"),
        ("arm64", ("ASIMD", "ASIMDHP", "SVE"), "aarch64-sve"),
        ("riscv64", V4, "riscv64"),
    ],
)
def test_the_highest_class_whose_features_are_all_there(machine: str, features: tuple[str, ...], expected: str) -> None:
    assert classify(machine, {**dict.fromkeys(V4, False), **dict.fromkeys(features, True)}) == expected


def test_this_cpu_has_a_class() -> None:
    assert cpu_class() == cpu_class()
    assert cpu_class().startswith(("x86-64", "aarch64")) or "-" not in cpu_class()
