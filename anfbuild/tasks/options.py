"""The options of each task and their limits. Light: no numpy."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

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


def _whole(default: int, low: int, high: int) -> int:
    """An option with its default value and the interval that it must lie in, without fractions."""
    field: int = dataclasses.field(default=default, metadata={"low": low, "high": high, "whole": True})
    return field


def _choice(default: str, *choices: str) -> str:
    """An option that is one of `choices`."""
    field: str = dataclasses.field(default=default, metadata={"choices": choices})
    return field


def _switch(default: bool) -> bool:
    """An option that is true or false."""
    field: bool = dataclasses.field(default=default, metadata={"choices": (True, False)})
    return field


def _output() -> str | None:
    """An option that names an output of the model, or null."""
    field: str | None = dataclasses.field(default=None, metadata={"name": True})
    return field


@dataclasses.dataclass(frozen=True)
class SegmentationOptions:
    """How maps become the class of each pixel, and which classes are judged."""

    layout: str = _choice("NCHW", "NCHW", "NHWC")
    """Where the output has its classes."""
    activation: str = _choice("none", "none", "sigmoid", "softmax", "argmax")
    """`none`, `sigmoid`: a map of probabilities, or of their logits, for each class but the background. `softmax`,
    `argmax`: a map for each class, the background first; `argmax` takes the greatest whatever it is."""
    threshold: float = _number(0.5, 0.0, 1.0)
    """A pixel is of the class with the greatest probability above this one, else background; not read by `argmax`."""
    background: bool = _switch(False)
    """Whether the background is a class of the mean."""


@dataclasses.dataclass(frozen=True)
class LandmarksOptions:
    """Which outputs hold what, and how far off a point may be."""

    points: str | None = _output()
    """The output with all points, one after the other; null where the model has one output."""
    presence: str | None = _output()
    """The output with the probability that there is something to find."""
    handedness: str | None = _output()
    """The output with the probability of a right hand."""
    dims: int = _whole(2, 2, 16)
    """Values of a point: x, y and what follows, such as z and visibility."""
    extent: float = _number(1.0, 1e-6, 1e6)
    """The value of a point at the right or lower edge of the image: 1, or the input's edge in pixels."""
    threshold: float = _number(0.5, 0.0, 1.0)
    """There is something from this presence on."""
    reference: str = _choice("box", "box", "image")
    """The size that `fraction` is of: the longer side of the box around the true points, or of the image."""
    fraction: float = _number(0.1, 0.0, 1.0)
    """A point is right within this share of the reference size."""


@dataclasses.dataclass(frozen=True)
class NoOptions:
    """Of a task that is settled by its model and its vocabulary."""


def read_options(kind: type[T], options: Mapping[str, object]) -> T:
    """`options` as the dataclass `kind`; RecipeError for an unknown name and for a value that it does not take."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    for name, value in options.items():
        if name not in fields:
            raise RecipeError(
                f"unknown option {name!r}", where=f"task.{name}", choices=fields, remedy=did_you_mean(name, fields)
            )
        _check(name, value, fields[name].metadata)
    return kind(**options)


def _check(name: str, value: object, limits: Mapping[str, Any]) -> None:
    where = f"task.{name}"
    if "choices" in limits:
        if not any(value is choice or (isinstance(value, str) and value == choice) for choice in limits["choices"]):
            raise RecipeError(f"{name} cannot be {value!r}", where=where, choices=limits["choices"])
    elif "name" in limits:
        if value is not None and (not isinstance(value, str) or not value):
            raise RecipeError(f"{name} must be the name of an output or null, not {value!r}", where=where)
    elif isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RecipeError(f"{name} must be a number, not {value!r}", where=where)
    elif not limits["low"] <= value <= limits["high"]:
        raise RecipeError(
            f"{name} must be between {limits['low']:g} and {limits['high']:g}, not {value:g}", where=where
        )
    elif "whole" in limits and not isinstance(value, int):
        raise RecipeError(f"{name} must be a whole number, not {value!r}", where=where)
