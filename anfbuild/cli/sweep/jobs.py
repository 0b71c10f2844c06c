"""From overrides to jobs: which combinations there are, counted before they are made."""

from __future__ import annotations

import dataclasses
import decimal
import itertools
import math
import re
from collections.abc import Sequence

from hydra.core.override_parser.types import ChoiceSweep, Override, RangeSweep

from anfbuild.errors import RecipeError

LIMIT = 10_000
"""Jobs of one sweep."""

_LONGEST_NAME = 120
_DIGITS = 15


@dataclasses.dataclass(frozen=True)
class Job:
    """One combination: all of its overrides, and of these the ones in which the jobs of the sweep differ."""

    number: int
    overrides: tuple[str, ...]
    varied: tuple[str, ...]


def expand(parsed: Sequence[Override]) -> list[Job]:
    """Every combination, the last override changing first; of two overrides of one key the later counts.

    Raises RecipeError: more than LIMIT combinations, or values that cannot be counted.
    """
    last = {item.get_key_element(): item for item in parsed}
    _check_number(list(last.values()))
    columns = [
        [f"{key}={value}" for value in item.sweep_string_iterator()] if item.is_sweep_override() else [_line(item)]
        for key, item in last.items()
    ]
    swept = [item.is_sweep_override() for item in last.values()]
    return [
        Job(number, row, tuple(itertools.compress(row, swept)))
        for number, row in enumerate(itertools.product(*columns))
    ]


def folder_name(number: int, varied: Sequence[str]) -> str:
    """The name of a job's folder: its number, and as much as fits of what sets it apart."""
    return "-".join([f"{number:03d}", *map(_slug, varied)])[:_LONGEST_NAME]


def _check_number(items: Sequence[Override]) -> None:
    counts = [(_count(item), _line(item)) for item in items if item.is_sweep_override()]
    total = math.prod(count for count, _ in counts)
    if total > LIMIT:
        most, culprit = max(counts)
        raise RecipeError(
            f"the sweep has {_text(total)} jobs, and {LIMIT} are the most; {culprit!r} alone has {_text(most)} values",
            where="command line",
            remedy="Give fewer values, or a range with a larger step: range(START,STOP,STEP).",
        )


def _count(item: Override) -> int:
    value = item.value()
    if isinstance(value, RangeSweep):
        return _length(value, item)
    if isinstance(value, ChoiceSweep):
        return len(value.list)
    if item.is_discrete_sweep():  # a glob: as many as there are files
        return sum(1 for _ in item.sweep_iterator())
    raise RecipeError(
        f"{_line(item)!r} has no values that could be counted",
        where="command line",
        remedy="Give values, KEY=A,B or KEY=range(START,STOP,STEP).",
    )


def _length(value: RangeSweep, item: Override) -> int:
    """The number of values of a range, which may be more than memory holds."""
    try:
        start, stop, step = (decimal.Decimal(number or 0) for number in (value.start, value.stop, value.step))
        with decimal.localcontext(prec=50):
            return max(0, math.ceil((stop - start) / step))
    except (decimal.DecimalException, ArithmeticError, ValueError) as error:
        raise RecipeError(
            f"{_line(item)!r} has no end", where="command line", remedy="Give range(START,STOP,STEP), STEP not 0."
        ) from error


def _text(count: int) -> str:
    return str(count) if count < 10**_DIGITS else f"{decimal.Decimal(count):.2E}"


def _line(item: Override) -> str:
    return item.input_line or ""


def _slug(override: str) -> str:
    return re.sub(r"[^\w.]+", "_", override, flags=re.ASCII).strip("_.")
