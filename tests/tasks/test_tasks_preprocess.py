from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from anfbuild.errors import RecipeError, StepError
from anfbuild.tasks.preprocess import preprocess, resize

IMAGE = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)


def spec(**changes: Any) -> Any:
    return {"shape": [1, 3, 4, 6], "dtype": "float32", "layout": "NCHW", "channels": "RGB", **changes}


def test_normalises_as_the_formula_says() -> None:
    mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    array = preprocess(IMAGE, spec(channels="BGR", scale=1 / 255, mean=mean, std=std))
    expected = (IMAGE[:, :, ::-1] / 255 - mean) / std
    assert array.shape == (1, 3, 4, 6)
    assert array.dtype == np.float32
    assert array.flags.c_contiguous
    np.testing.assert_allclose(array[0].transpose(1, 2, 0), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_pixels_pass_as_they_are(dtype: str) -> None:
    array = preprocess(IMAGE, spec(shape=[1, 4, 6, 3], layout="NHWC", dtype=dtype))
    assert array.dtype == dtype
    np.testing.assert_array_equal(array[0], IMAGE)


def test_grey_is_luma() -> None:
    image = np.array([[[255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]]], np.uint8)
    array = preprocess(image, spec(shape=[1, 1, 1, 4], channels="GRAY", dtype="uint8"))
    assert array.ravel().tolist() == [255, 76, 150, 29]


def test_resizes_with_half_pixel_centres() -> None:
    row: NDArray[np.uint8] = np.array([0, 100], np.uint8).reshape(1, 2, 1)
    assert resize(row, 1, 4).ravel().tolist() == [0, 25, 75, 100]
    assert resize(row, 1, 1).ravel().tolist() == [50]
    assert resize(row.reshape(2, 1, 1), 4, 1).ravel().tolist() == [0, 25, 75, 100]


def test_another_image_size_is_resized() -> None:
    assert preprocess(IMAGE, spec(shape=[1, 3, 32, 64])).shape == (1, 3, 32, 64)


@pytest.mark.parametrize("image", [IMAGE[:, :, :1], IMAGE[:, :, 0], IMAGE.astype(np.float32), IMAGE[:0]])
def test_refuses_another_kind_of_image(image: Any) -> None:
    with pytest.raises(StepError, match="uint8 RGB"):
        preprocess(image, spec())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [1, 1, 4, 6]}, "RGB has 3 channels"),
        ({"layout": "NHWC"}, r"\(NHWC\) has 6"),
        ({"shape": [2, 3, 4, 6]}, "batch of 1, not 2"),
        ({"shape": [1, 3, 4]}, "four fixed dimensions"),
        ({"shape": [1, 3, -1, 6]}, "four fixed dimensions"),
        ({"channels": "RGBA"}, "valid choices: RGB, BGR, GRAY"),
        ({"dtype": "int64"}, "valid choices: float32, uint8"),
        ({"layout": "CHW"}, "valid choices: NCHW, NHWC"),
        ({"mean": [0.5]}, "a value for each of RGB"),
        ({"std": [1, 0, 1]}, "std must not be 0"),
        ({"scale": float("nan")}, "finite"),
        ({"dtype": "uint8", "scale": 1 / 255}, "as they are"),
        ({"dtype": "uint8", "mean": [1, 1, 1]}, "as they are"),
    ],
)
def test_refuses_a_spec_that_no_image_fits(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        preprocess(IMAGE, spec(**changes))
