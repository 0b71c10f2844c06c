"""Sizes (`20GB`) and ages (`30d`), as a user writes them. Prefixes are decimal: 1 MB is 10^6 bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from anfbuild.errors import RecipeError

_SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_AGES = {"s": 1, "min": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)\s*([A-Za-z]*)", re.ASCII)


def parse_size(text: str, option: str) -> int:
    """Bytes, of `20GB`, `500MB`, `1.5TB`. Raises RecipeError at `option`."""
    return int(_parse(text, option, "size", _SIZES, "20GB"))


def parse_age(text: str, option: str) -> float:
    """Seconds, of `30d`, `12h`, `90min`. Raises RecipeError at `option`."""
    return _parse(text, option, "time", _AGES, "30d")


def _parse(text: str, option: str, what: str, units: Mapping[str, int], example: str) -> float:
    found = _AMOUNT.fullmatch(text.strip())
    factors = {unit.lower(): factor for unit, factor in units.items()}
    if found is None or found[2].lower() not in factors:
        raise RecipeError(
            f"{text!r} is no {what}: a number and a unit",
            where=option,
            choices=units,
            remedy=f"Write {option} {example}.",
        )
    return float(found[1]) * factors[found[2].lower()]


def show_size(size: int) -> str:
    """`size` bytes for people, to three digits or so."""
    for unit in ("TB", "GB", "MB", "kB"):
        if size >= _SIZES[unit]:
            return f"{size / _SIZES[unit]:.1f} {unit}"
    return f"{size} B"
