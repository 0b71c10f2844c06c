"""Encodings: how the values of a tensor become integers. value = scale * (integer - zero_point)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from anfbuild.errors import StepError

_MIN_SPAN = 1e-4
"""The least span of a range, as in onnxruntime's QNN configuration (MinimumRealRange): tiny scales are unsafe."""

_LEAST_CHANNEL = 2.0**-12
"""The least scale of a channel, as a share of the greatest. With 16-bit activations the HTP (QNN 2.51) returns garbage
for channels below about 2^-16 of it, without a warning; a channel this small moves no output by a code."""

_INT32_ROOM = 2.0**30
"""How far a bias may go into int32, so that the accumulator has room for the products too."""


class EncodingJson(TypedDict):
    """One encoding in encodings.json."""

    dtype: str
    axis: int | None
    scale: list[float]
    zero_point: list[int]


@dataclass(frozen=True)
class Encoding:
    """`dtype` is an integer type's name, `axis` None: one scale for the whole tensor. Scales are float32 values."""

    dtype: str
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None

    def quantize(self, values: np.ndarray) -> np.ndarray:
        """`values` as integers of `dtype`: rounded half to even, saturated."""
        limits = np.iinfo(self.dtype)
        shape = [1] * values.ndim
        if self.axis is not None:
            shape[self.axis] = -1
        scale = np.array(self.scale, np.float64).reshape(shape)
        zero_point = np.array(self.zero_point, np.int64).reshape(shape)
        integers = np.rint(values.astype(np.float64) / scale) + zero_point
        return np.clip(integers, limits.min, limits.max).astype(self.dtype).reshape(values.shape)

    def dequantize(self, integers: np.ndarray) -> np.ndarray:
        """`integers` as float32, the way DequantizeLinear computes them. One scale for the whole tensor only."""
        (scale,), (zero_point,) = self.scale, self.zero_point
        return (integers.astype(np.int32) - np.int32(zero_point)).astype(np.float32) * np.float32(scale)

    def to_json(self) -> EncodingJson:
        return EncodingJson(dtype=self.dtype, axis=self.axis, scale=list(self.scale), zero_point=list(self.zero_point))


@dataclass(frozen=True)
class Encodings:
    """The encodings of a QDQ model, by the float model's tensor names; `parameters` are weights, biases, constants.

    A parameter that several nodes read with different encodings has its later ones under the name of the QDQ model's
    initializer.
    """

    activations: Mapping[str, Encoding]
    parameters: Mapping[str, Encoding]

    def to_json(self) -> dict[str, dict[str, EncodingJson]]:
        """`from_json` reads it back exactly: float32 scales survive as decimal numbers."""
        return {
            "activations": {name: encoding.to_json() for name, encoding in sorted(self.activations.items())},
            "parameters": {name: encoding.to_json() for name, encoding in sorted(self.parameters.items())},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Mapping[str, EncodingJson]]) -> Encodings:
        """Raises StepError when `data` is not what `to_json` returns."""
        try:
            return cls(*({n: _read(e) for n, e in data[kind].items()} for kind in ("activations", "parameters")))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise StepError(f"not encodings: {error!r}", remedy="Run the quantize step again.") from error


def _read(data: EncodingJson) -> Encoding:
    if np.dtype(data["dtype"]).kind not in "iu":
        raise ValueError(f"dtype {data['dtype']}")
    if len(data["scale"]) != len(data["zero_point"]):
        raise ValueError("as many zero points as scales")
    return Encoding(data["dtype"], tuple(data["scale"]), tuple(data["zero_point"]), data["axis"])


def from_range(lo: float, hi: float, bits: int) -> Encoding:
    """The unsigned asymmetric encoding of [lo, hi], widened to hold zero, which is represented exactly.

    A tensor that is always zero gets [0, 1]: nothing is known of its scale.
    """
    lo, hi = min(lo, 0.0), max(hi, 0.0)
    if lo == hi:
        hi = 1.0
    levels = 2**bits - 1
    scale = np.float32(max(hi - lo, _MIN_SPAN) / levels)
    return Encoding(f"uint{bits}", (float(scale),), (int(np.clip(np.rint(-lo / scale), 0, levels)),))


def fixed_range(lo: float, hi: float, bits: int) -> Encoding:
    """The unsigned encoding of [lo, hi) with 2^bits steps: (0, 1) has scale 1/256 and zero point 0 in 8 bits."""
    scale = (hi - lo) / 2**bits
    return Encoding(f"uint{bits}", (scale,), (round(-lo / scale),))


def symmetric(values: np.ndarray, bits: int, axis: int | None) -> Encoding:
    """The signed encoding with zero point 0 whose greatest integer is the greatest magnitude, per slice of `axis`.

    Slices that are all zero, or nearly so, get a scale that is at least 2^-12 of the greatest one.
    """
    others = tuple(i for i in range(values.ndim) if i != axis) if axis is not None else None
    magnitude = np.atleast_1d(np.abs(values).max(axis=others, initial=0.0)).astype(np.float64)
    magnitude = np.maximum(magnitude, (magnitude.max(initial=0.0) or 1.0) * _LEAST_CHANNEL)
    scale = (magnitude / (2 ** (bits - 1) - 1)).astype(np.float32)
    return Encoding(f"int{bits}", tuple(scale.tolist()), (0,) * scale.size, axis)


def make_room_for_bias(weight: Encoding, bias: np.ndarray, input_scale: float) -> Encoding:
    """`weight`, with scales raised where `bias` in steps of input_scale * scale would overflow int32."""
    least = np.abs(bias).astype(np.float64) / (input_scale * _INT32_ROOM)
    scale = np.array(weight.scale, np.float64)
    raised = np.maximum(scale, least if weight.axis is not None else least.max(initial=0.0)).astype(np.float32)
    return Encoding(weight.dtype, tuple(raised.tolist()), weight.zero_point, weight.axis)


def bias_encoding(weight: Encoding, input_scale: float) -> Encoding:
    """int32 with scale = input_scale * weight scale: the scale of the products that the bias is added to."""
    scale = (np.array(weight.scale, np.float32) * np.float32(input_scale)).astype(np.float32)
    axis = None if weight.axis is None else 0
    return Encoding("int32", tuple(scale.tolist()), (0,) * scale.size, axis)
