"""Agreement is counted in steps of the output's own encoding."""

from __future__ import annotations

import math

import numpy as np
import pytest

from anfbuild.errors import StepError
from anfbuild.quantization.agreement import agreement
from anfbuild.quantization.encodings import Encoding, Encodings

STEP = 0.5
ENCODINGS = Encodings({"y": Encoding("uint8", (STEP,), (0,)), "z": Encoding("uint8", (STEP,), (0,))}, {})


def runs(*arrays: list[float]) -> list[dict[str, np.ndarray]]:
    return [{"y": np.array(array, np.float32)} for array in arrays]


def test_differences_are_in_steps_over_all_samples() -> None:
    found = agreement(runs([1, 2], [3, 4]), runs([1, 2.5], [3, 2]), ENCODINGS)
    assert found.tensor == "y"
    assert found.max_lsb == 4
    assert found.rms_lsb == pytest.approx(math.sqrt((1 + 16) / 4))
    assert found.sqnr_db == pytest.approx(10 * math.log10((1 + 4 + 9 + 16) / (0.25 + 4)))


def test_sixteen_bits_are_told_in_the_steps_of_eight() -> None:
    encodings = Encodings({"y": Encoding("uint16", (STEP / 256,), (0,))}, {})
    assert agreement(runs([1, 2]), runs([1, 2.5]), encodings).max_lsb == 1


def test_equal_runs_have_no_noise() -> None:
    found = agreement(runs([1, 2]), runs([1, 2]), ENCODINGS)
    assert (found.rms_lsb, found.max_lsb, found.sqnr_db) == (0, 0, None)


def test_the_worst_output_is_told() -> None:
    good, bad = np.zeros(4, np.float32), np.full(4, STEP, np.float32)
    found = agreement([{"y": good, "z": good}], [{"y": good, "z": bad}], ENCODINGS)
    assert (found.tensor, found.rms_lsb) == ("z", 1)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ([{}], "nothing"),
        (runs([1.0]), r"should be \(2,\)"),
        (runs([1.0, float("nan")]), "no numbers"),
    ],
)
def test_what_cannot_be_compared_is_named(other: list[dict[str, np.ndarray]], words: str) -> None:
    with pytest.raises(StepError, match=words):
        agreement(runs([1, 2]), other, ENCODINGS)
