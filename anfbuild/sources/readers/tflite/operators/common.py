"""What several families of operators ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from anfbuild.errors import StepError
from anfbuild.sources.readers.tflite.builder import FIRST, OWN, TO_FIRST, Builder
from anfbuild.sources.readers.tflite.source import Operator

Converters = Mapping[str, Callable[[Builder, Operator], None]]
"""Kind of operator -> what writes its nodes."""


def held_layout(builder: Builder, operator: Operator) -> str:
    """FIRST where a value of four dimensions that the operator reads is held so, and its output has four as well."""
    if len(builder.shape(operator.outputs[0])) != 4:
        return OWN
    return FIRST if builder.is_first(*(index for index in operator.inputs if index >= 0)) else OWN


def axis_of(axis: int, rank: int, layout: str) -> int:
    """Where the dimension `axis` of the file's order (from the end, where negative) is in `layout`."""
    if not -rank <= axis < rank:
        raise StepError(f"there is no dimension {axis} in a tensor of {rank}")
    axis %= rank
    return TO_FIRST.index(axis) if layout == FIRST else axis


def by_layout(values: Sequence[int], layout: str) -> list[int]:
    """One value a dimension, from the file's order to that of `layout`."""
    return [values[axis] for axis in TO_FIRST] if layout == FIRST else list(values)


def keeps_order(removed: Sequence[int]) -> bool:
    """Whether the file's order and channels first are the same once the dimensions `removed` of four are gone."""
    left = [axis for axis in TO_FIRST if axis not in removed]
    return left == sorted(left)
