"""An image as the input of a network: resized, its channels ordered, normalised, laid out. numpy only.

Integer or single IEEE operations throughout, so that every machine makes the same bytes.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import StepError
from anfbuild.tasks.inputs import ImageInput, read_input
from anfbuild.tasks.task import InputSpec

T = TypeVar("T", bound=np.generic)


def preprocess(image: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.float32] | NDArray[np.uint8]:
    """`image` (height, width, 3 RGB, uint8) as one batch of `spec`, stretched to its size where that differs.

    Raises StepError for another kind of image, RecipeError for a spec that no image can be made into.
    """
    check_image(image)
    wanted = read_input(spec)
    pixels = _ordered(resize(image, wanted.height, wanted.width), wanted.channels)
    if wanted.dtype == "uint8":
        return _laid_out(pixels.transpose(2, 0, 1), wanted.layout)
    return _laid_out(_normalised(pixels, wanted), wanted.layout)


def check_image(image: NDArray[np.generic]) -> None:
    """StepError for what is not (height, width, 3) uint8."""
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8 or 0 in image.shape:
        raise StepError(f"an image must be (height, width, 3) uint8 RGB, not {image.shape} {image.dtype}")


def resize(image: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """`image` (h, w, channels) → (height, width, channels), bilinear with half-pixel centres, rounded half up.

    The sampling of ONNX Resize (linear, half_pixel) and of most camera pipelines: no antialiasing.
    """
    if image.shape[:2] == (height, width):
        return image
    rounded: NDArray[np.uint8] = np.floor(stretch(image, height, width) + np.float32(0.5)).astype(np.uint8)
    return rounded


def stretch(values: NDArray[Any], height: int, width: int) -> NDArray[np.float32]:
    """`values` (h, w, …) → (height, width, …), sampled as `resize` does, not rounded."""
    top, bottom, down = _taps(values.shape[0], height)
    left, right, across = _taps(values.shape[1], width)
    rest = (1,) * (values.ndim - 2)
    down, across = down.reshape(-1, 1, *rest), across.reshape(1, -1, *rest)
    rows = values[top] * (1 - down) + values[bottom] * down
    return np.asarray(rows[:, left] * (1 - across) + rows[:, right] * across, np.float32)


def _laid_out(planes: NDArray[T], layout: str) -> NDArray[T]:
    """(channels, height, width) → a batch of one."""
    return np.ascontiguousarray((planes if layout == "NCHW" else planes.transpose(1, 2, 0))[None])


def _taps(size: int, wanted: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]:
    """The two source indices of each wanted index and the weight of the second."""
    position = np.clip((np.arange(wanted) + 0.5) * (size / wanted) - 0.5, 0, size - 1)
    first = np.floor(position).astype(np.intp)
    return first, np.minimum(first + 1, size - 1), (position - first).astype(np.float32)


def _ordered(image: NDArray[np.uint8], channels: str) -> NDArray[np.uint8]:
    if channels == "BGR":
        return image[:, :, ::-1]
    if channels == "GRAY":
        # ITU-R BT.601 luma in 16-bit fixed point: 0.299, 0.587, 0.114.
        luma = (image.astype(np.uint32) * np.array([19595, 38470, 7471], np.uint32)).sum(axis=2, keepdims=True)
        gray: NDArray[np.uint8] = ((luma + 32768) >> 16).astype(np.uint8)
        return gray
    return image


def _normalised(pixels: NDArray[np.uint8], spec: ImageInput) -> NDArray[np.float32]:
    """(height, width, channels) → (channels, height, width)."""
    # 256 values a channel: the table is exact to float32's rounding and faster than arithmetic on the pixels.
    levels = np.arange(256, dtype=np.float64)
    planes = np.empty((len(spec.mean), *pixels.shape[:2]), np.float32)
    for channel, (mean, std, plane) in enumerate(zip(spec.mean, spec.std, planes, strict=True)):
        table = ((levels * spec.scale - mean) / std).astype(np.float32)
        # A byte is never out of 0..255, so "clip" changes nothing; it spares numpy the check, and a copy of the result.
        np.take(table, pixels[:, :, channel], out=plane, mode="clip")
    return planes
