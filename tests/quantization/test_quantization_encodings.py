import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anfbuild.errors import StepError
from anfbuild.quantization.encodings import (
    Encoding,
    Encodings,
    bias_encoding,
    fixed_range,
    from_range,
    make_room_for_bias,
    symmetric,
)


def dequantize(encoding: Encoding, values: np.ndarray) -> np.ndarray:
    assert encoding.axis is None
    return (encoding.quantize(values).astype(np.float64) - encoding.zero_point[0]) * encoding.scale[0]


@given(st.floats(-1e6, 0), st.floats(0, 1e6), st.sampled_from([8, 16]))
def test_zero_is_exact_and_the_range_is_covered(lo: float, hi: float, bits: int) -> None:
    encoding = from_range(lo, hi, bits)
    assert 0 <= encoding.zero_point[0] < 2**bits
    assert np.float32(encoding.scale[0]) == encoding.scale[0] > 0
    assert dequantize(encoding, np.zeros(1)) == 0
    ends = np.array([lo, hi])
    np.testing.assert_allclose(dequantize(encoding, ends), ends, atol=encoding.scale[0] * 1.01)


@pytest.mark.parametrize(("lo", "hi"), [(0, 0), (3, 3), (-3, -3), (0, 1e-30)])
def test_constant_tensors_get_a_sane_scale(lo: float, hi: float) -> None:
    encoding = from_range(lo, hi, 8)
    assert 1e-7 < encoding.scale[0] < 0.1
    np.testing.assert_allclose(dequantize(encoding, np.array([lo])), lo, atol=encoding.scale[0])


def test_fixed_ranges_have_steps_of_a_power_of_two() -> None:
    assert fixed_range(0, 1, 8) == Encoding("uint8", (1 / 256,), (0,))
    assert fixed_range(0, 1, 16) == Encoding("uint16", (1 / 65536,), (0,))
    assert fixed_range(-1, 1, 8) == Encoding("uint8", (1 / 128,), (128,))
    assert fixed_range(-1, 1, 16) == Encoding("uint16", (1 / 32768,), (32768,))


def test_symmetric_per_channel_uses_each_channels_magnitude() -> None:
    values = np.array([[1.0, -2.0], [0.5, 0.25], [0.0, 0.0]])
    encoding = symmetric(values, 8, 0)
    np.testing.assert_allclose(encoding.scale[:2], [2 / 127, 0.5 / 127], rtol=1e-6)
    np.testing.assert_array_equal(encoding.quantize(values), [[64, -127], [127, 64], [0, 0]])
    assert encoding.scale[2] == pytest.approx(2 / 127 / 4096)


def test_a_nearly_dead_channel_keeps_a_scale_that_the_hardware_can_represent() -> None:
    encoding = symmetric(np.array([[1.0], [1e-9]]), 8, 0)
    assert encoding.scale[1] / encoding.scale[0] == pytest.approx(2**-12)


def test_a_great_bias_raises_the_weights_scale_instead_of_overflowing() -> None:
    weight = Encoding("int8", (1e-6, 1e-2), (0, 0), 0)
    bias = np.array([1e4, 1.0])
    raised = make_room_for_bias(weight, bias, 1e-3)
    assert raised.scale[1] == np.float32(1e-2)
    encoding = bias_encoding(raised, 1e-3)
    restored = encoding.quantize(bias) * np.array(encoding.scale)
    np.testing.assert_allclose(restored, bias, rtol=1e-4)


def test_json_round_trip_is_exact() -> None:
    encodings = Encodings(
        {"x": from_range(-0.1, 0.7, 16)}, {"w": symmetric(np.arange(6.0).reshape(2, 3), 8, 0), "b": from_range(0, 0, 8)}
    )
    assert Encodings.from_json(json.loads(json.dumps(encodings.to_json()))) == encodings


@pytest.mark.parametrize("data", [{}, {"activations": {"x": {}}, "parameters": {}}, {"activations": 1}])
def test_other_json_is_refused(data: dict[str, dict[str, object]]) -> None:
    with pytest.raises(StepError, match="not encodings"):
        Encodings.from_json(data)
