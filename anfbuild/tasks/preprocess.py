"""An image as the input of a network: resized, its channels ordered, normalised, laid out. numpy only.

Integer or single IEEE operations throughout, so that every machine makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import RecipeError, StepError
from anfbuild.tasks.task import InputSpec

T = TypeVar("T", bound=np.generic)

_CHANNELS = {"RGB": 3, "BGR": 3, "GRAY": 1}
_LAYOUTS = ("NCHW", "NHWC")
_DTYPES = ("float32", "uint8")


def preprocess(image: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.float32] | NDArray[np.uint8]:
    """`image` (height, width, 3 RGB, uint8) as one batch of `spec`, stretched to its size where that differs.

    Raises StepError for another kind of image, RecipeError for a spec that no image can be made into.
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or 0 in image.shape:
        raise StepError(f"an image must be (height, width, 3) uint8 RGB, not {image.shape} {image.dtype}")
    channels = _choice(spec, "channels", "RGB", tuple(_CHANNELS))
    layout = _choice(spec, "layout", "NCHW", _LAYOUTS)
    dtype = _choice(spec, "dtype", "float32", _DTYPES)
    height, width = _size(spec, layout, channels)
    pixels = _ordered(resize(image, height, width), channels)
    if dtype == "uint8":
        return _laid_out(_unchanged(pixels, spec).transpose(2, 0, 1), layout)
    return _laid_out(_normalised(pixels, spec, channels), layout)


def resize(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """`image` (h, w, channels) → (height, width, channels), bilinear with half-pixel centres, rounded half up.

    The sampling of ONNX Resize (linear, half_pixel) and of most camera pipelines: no antialiasing.
    """
    if image.shape[:2] == (height, width):
        return image
    top, bottom, down = _taps(image.shape[0], height)
    left, right, across = _taps(image.shape[1], width)
    down, across = down[:, None, None], across[None, :, None]
    rows = image[top] * (1 - down) + image[bottom] * down
    values = rows[:, left] * (1 - across) + rows[:, right] * across
    return np.floor(values + np.float32(0.5)).astype(np.uint8)


def _laid_out(planes: NDArray[T], layout: str) -> NDArray[T]:
    """(channels, height, width) → a batch of one."""
    return np.ascontiguousarray((planes if layout == "NCHW" else planes.transpose(1, 2, 0))[None])


def _taps(size: int, wanted: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """The two source indices of each wanted index and the weight of the second."""
    position = np.clip((np.arange(wanted) + 0.5) * (size / wanted) - 0.5, 0, size - 1)
    first = np.floor(position).astype(np.intp)
    return first, np.minimum(first + 1, size - 1), (position - first).astype(np.float32)


def _choice(spec: InputSpec, key: str, default: str, choices: tuple[str, ...]) -> str:
    value = spec.get(key, default)
    if value not in choices:
        raise RecipeError(f"{key} {value!r} is not one that an image can have", where=f"inputs.{key}", choices=choices)
    return str(value)


def _size(spec: InputSpec, layout: str, channels: str) -> tuple[int, int]:
    """(height, width) of a shape that one image fills."""
    shape = list(spec.get("shape", ()))
    where = "inputs.shape"
    if len(shape) != 4 or any(not isinstance(size, int) or size < 1 for size in shape):
        raise RecipeError(f"an image input needs four fixed dimensions ({layout}), not {shape}", where=where)
    if shape[0] != 1:
        raise RecipeError(f"one image is a batch of 1, not {shape[0]}", where=where, remedy=f"Make {shape} start by 1.")
    found = shape[layout.index("C")]
    if found != _CHANNELS[channels]:
        raise RecipeError(
            f"{channels} has {_CHANNELS[channels]} channels, but {shape} ({layout}) has {found}",
            where=where,
            remedy="Correct the layout, the channels or the shape.",
        )
    return shape[layout.index("H")], shape[layout.index("W")]


def _ordered(image: NDArray[np.uint8], channels: str) -> NDArray[np.uint8]:
    if channels == "BGR":
        return image[:, :, ::-1]
    if channels == "GRAY":
        # ITU-R BT.601 luma in 16-bit fixed point: 0.299, 0.587, 0.114.
        luma = (image.astype(np.uint32) * np.array([19595, 38470, 7471], np.uint32)).sum(axis=2, keepdims=True)
        gray: NDArray[np.uint8] = ((luma + 32768) >> 16).astype(np.uint8)
        return gray
    return image


def _normalised(pixels: NDArray[np.uint8], spec: InputSpec, channels: str) -> NDArray[np.float32]:
    """(height, width, channels) → (channels, height, width)."""
    scale = float(spec.get("scale", 1.0))
    mean = _per_channel("mean", spec.get("mean"), 0.0, channels)
    std = _per_channel("std", spec.get("std"), 1.0, channels)
    if 0 in std or not np.isfinite([scale, *mean, *std]).all():
        raise RecipeError(f"std must not be 0, all values finite: {scale}, {mean}, {std}", where="inputs.std")
    # 256 values a channel: the table is exact to float32's rounding and faster than arithmetic on the pixels.
    levels = np.arange(256, dtype=np.float64)
    table = np.stack([(levels * scale - m) / s for m, s in zip(mean, std, strict=True)]).astype(np.float32)
    planes = np.empty((len(mean), *pixels.shape[:2]), np.float32)
    for channel, plane in enumerate(planes):
        # A byte is never out of 0..255, so "clip" changes nothing; it spares numpy the check, and a copy of the result.
        np.take(table[channel], pixels[:, :, channel], out=plane, mode="clip")
    return planes


def _per_channel(key: str, given: Sequence[float] | None, default: float, channels: str) -> list[float]:
    values = [float(value) for value in given or ()] or [default] * _CHANNELS[channels]
    if len(values) != _CHANNELS[channels]:
        raise RecipeError(f"{key} must have a value for each of {channels}, not {values}", where=f"inputs.{key}")
    return values


def _unchanged(pixels: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.uint8]:
    mean, std = set(spec.get("mean") or ()), set(spec.get("std") or ())
    if spec.get("scale", 1.0) != 1 or mean - {0} or std - {1}:
        raise RecipeError(
            "a uint8 input takes the pixels as they are, but scale, mean or std would change them",
            where="inputs.dtype",
            remedy="Set scale 1, mean 0 and std 1, or dtype float32.",
        )
    return pixels
