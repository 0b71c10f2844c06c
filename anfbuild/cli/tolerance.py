"""How near two results have to be that were made on CPUs of different feature classes."""

from __future__ import annotations

from typing import Any

TOLERANCE = 1e-3
"""Relative difference that is allowed between figures made on two classes: far above the rounding of float32, far
below what a decision needs. It is a choice, not a measurement; a lock states it, so that it can be chosen otherwise."""
_NOTHING = 1e-9
"""A difference of less is none, so that 0 and 1e-17 are the same."""


def close(a: float, b: float, tolerance: float) -> bool:
    """Whether two numbers differ by no more than `tolerance`, relative to the greater."""
    return abs(a - b) <= max(tolerance * max(abs(a), abs(b)), _NOTHING)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def first_difference(a: Any, b: Any, tolerance: float | None = None, pointer: str = "") -> str | None:
    """The JSON pointer of the first leaf in which two documents differ, with both values; None where they do not.

    Numbers may differ by `tolerance`, with one.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        pairs = [(key, a.get(key, _ABSENT), b.get(key, _ABSENT)) for key in sorted(a.keys() | b.keys())]
        return _first(pairs, tolerance, pointer)
    if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        return _first([(str(index), *pair) for index, pair in enumerate(zip(a, b, strict=True))], tolerance, pointer)
    if tolerance is not None and is_number(a) and is_number(b):
        same = close(a, b, tolerance)
    else:
        same = type(a) is type(b) and a == b
    return None if same else f"{pointer or '/'} {_shown(a)}, then {_shown(b)}"


class _Absent:
    def __repr__(self) -> str:
        return "absent"


_ABSENT = _Absent()


def _first(pairs: list[tuple[str, Any, Any]], tolerance: float | None, pointer: str) -> str | None:
    found = (first_difference(a, b, tolerance, f"{pointer}/{key}") for key, a, b in pairs)
    return next((text for text in found if text is not None), None)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"
