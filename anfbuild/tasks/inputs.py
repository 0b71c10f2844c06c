"""What a recipe says of an input, read and checked. Light: no numpy, so that it is refused at start-up."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from anfbuild.errors import RecipeError
from anfbuild.tasks.task import InputSpec

CHANNELS = {"RGB": 3, "BGR": 3, "GRAY": 1}
_LAYOUTS = ("NCHW", "NHWC")
_DTYPES = ("float32", "uint8")

TOKENS = ("input_ids", "attention_mask", "token_type_ids")
"""The inputs of a BERT: the pieces of a text, 1 where there is one, and which of two texts each is of."""
_TOKEN_DTYPES = ("int64", "int32")
_FRAME = 2
"""The pieces that stand before and behind each text."""


@dataclasses.dataclass(frozen=True)
class ImageInput:
    """An input that one image fills: value = (pixel * scale - mean) / std, `mean` and `std` one a channel."""

    height: int
    width: int
    layout: str
    dtype: str
    channels: str
    scale: float
    mean: tuple[float, ...]
    std: tuple[float, ...]


def read_input(spec: InputSpec, where: str = "inputs") -> ImageInput:
    """`spec` with its defaults filled in; `where` is its key. Raises RecipeError for what no image can be made into."""
    channels = _choice(spec, "channels", "RGB", tuple(CHANNELS), where)
    layout = _choice(spec, "layout", "NCHW", _LAYOUTS, where)
    dtype = _choice(spec, "dtype", "float32", _DTYPES, where)
    height, width = _size(spec, layout, channels, where)
    scale = float(spec.get("scale", 1.0))
    mean = _per_channel("mean", spec.get("mean"), 0.0, channels, where)
    std = _per_channel("std", spec.get("std"), 1.0, channels, where)
    if 0 in std or not all(map(math.isfinite, (scale, *mean, *std))):
        raise RecipeError(f"std must not be 0, all values finite: {scale}, {mean}, {std}", where=f"{where}.std")
    if dtype == "uint8" and (scale != 1 or set(mean) - {0} or set(std) - {1}):
        raise RecipeError(
            "a uint8 input takes the pixels as they are, but scale, mean or std would change them",
            where=f"{where}.dtype",
            remedy="Set scale 1, mean 0 and std 1, or dtype float32.",
        )
    return ImageInput(height, width, layout, dtype, channels, scale, mean, std)


def read_tokens(name: str, spec: InputSpec, where: str = "inputs") -> tuple[int, str]:
    """(tokens, dtype) of an input that one text fills; RecipeError for what no text can be made into."""
    if name not in TOKENS:
        raise RecipeError(f"a text makes no input {name!r}", where=where, choices=TOKENS)
    dtype = spec.get("dtype", "float32")
    if dtype not in _TOKEN_DTYPES:
        raise RecipeError(f"the tokens of a text are no {dtype}", where=f"{where}.dtype", choices=_TOKEN_DTYPES)
    shape = list(spec.get("shape", ()))
    if len(shape) != 2 or shape[0] != 1 or shape[1] <= _FRAME:
        raise RecipeError(
            f"a text fills [1, tokens], with more than {_FRAME} tokens, not {shape}",
            where=f"{where}.shape",
            remedy="Give a length that most texts fit into, as in [1, 64].",
        )
    return shape[1], dtype


def _choice(spec: InputSpec, key: str, default: str, choices: tuple[str, ...], where: str) -> str:
    value = spec.get(key, default)
    if value not in choices:
        raise RecipeError(f"{key} {value!r} is not one that an image can have", where=f"{where}.{key}", choices=choices)
    return str(value)


def _size(spec: InputSpec, layout: str, channels: str, where: str) -> tuple[int, int]:
    """(height, width) of a shape that one image fills."""
    shape = list(spec.get("shape", ()))
    where = f"{where}.shape"
    if len(shape) != 4 or any(not isinstance(size, int) or size < 1 for size in shape):
        raise RecipeError(
            f"an image input needs four fixed dimensions ({layout}), not {shape}",
            where=where,
            remedy=f"Give four sizes of 1 or more, in the order {layout}.",
        )
    if shape[0] != 1:
        raise RecipeError(f"one image is a batch of 1, not {shape[0]}", where=where, remedy=f"Make {shape} start by 1.")
    found = shape[layout.index("C")]
    if found != CHANNELS[channels]:
        raise RecipeError(
            f"{channels} has {CHANNELS[channels]} channels, but {shape} ({layout}) has {found}",
            where=where,
            remedy="Correct the layout, the channels or the shape.",
        )
    return shape[layout.index("H")], shape[layout.index("W")]


def _per_channel(
    key: str, given: Sequence[float] | None, default: float, channels: str, where: str
) -> tuple[float, ...]:
    values = tuple(map(float, given or ())) or (default,) * CHANNELS[channels]
    if len(values) != CHANNELS[channels]:
        raise RecipeError(f"{key} must have a value for each of {channels}, not {list(values)}", where=f"{where}.{key}")
    return values
