"""The options of each task and their limits. Light: no numpy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from anfbuild.errors import RecipeError, did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


def _number(default: float, low: float, high: float) -> float:
    """An option with its default value and the interval that it must lie in."""
    field: float = dataclasses.field(default=default, metadata={"low": low, "high": high})
    return field


@dataclasses.dataclass(frozen=True)
class TextDetectionOptions:
    """Decoding of a DB heat map (Liao et al., Real-time Scene Text Detection with Differentiable Binarization, 2020)
    with PaddleOCR's defaults, and the overlap from which ICDAR 2015 takes a box for found."""

    threshold: float = _number(0.3, 0.0, 1.0)
    """A pixel is text above this probability."""
    box_threshold: float = _number(0.5, 0.0, 1.0)
    """A box is kept from this mean probability on."""
    unclip_ratio: float = _number(1.6, 0.0, 10.0)
    """A box is grown by area * ratio / perimeter on each side: the heat map is trained on shrunken text."""
    min_size: float = _number(3.0, 0.0, math.inf)
    """Pixels of the heat map: the short side of the smallest box before it is grown, 2 less than after."""
    iou: float = _number(0.5, 0.0, 1.0)
    """Intersection over union from which a box is right."""


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """Of a task that is settled by its model and its vocabulary."""


def read_options(kind: type[T], options: Mapping[str, object]) -> T:
    """`options` as the dataclass `kind`; RecipeError for an unknown name and for a value out of its interval."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name, value in options.items():
        if name not in fields:
            raise RecipeError(
                f"unknown option {name!r}", where=f"task.{name}", choices=fields, remedy=did_you_mean(name, fields)
            )
        low, high = fields[name].metadata["low"], fields[name].metadata["high"]
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise RecipeError(f"{name} must be a number, not {value!r}", where=f"task.{name}")
        if not low <= value <= high:
            raise RecipeError(f"{name} must be between {low:g} and {high:g}, not {value:g}", where=f"task.{name}")
    return kind(**options)
