"""What every task offers. Light: importing it imports no numpy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

from anfbuild.errors import StepError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Prediction = dict[str, Any]
"""An answer, or the ground truth of a sample: JSON values under the task's own names."""


class InputSpec(TypedDict, total=False):
    """How a model's image input is laid out: value = (pixel * scale - mean) / std, mean and std in channel order."""

    shape: Sequence[int]
    """Four fixed dimensions in the order of `layout`; the batch is 1."""
    dtype: str
    """`float32` (default) or `uint8`."""
    layout: str
    """`NCHW` (default) or `NHWC`."""
    channels: str
    """`RGB` (default), `BGR` or `GRAY`."""
    scale: float
    mean: Sequence[float]
    std: Sequence[float]


@dataclasses.dataclass(frozen=True)
class Score:
    """The metric over all samples, and what each sample contributes to it."""

    value: float
    """0..1."""
    parts: dict[str, float]
    """The figures that the value is made of, such as precision and recall."""
    counts: NDArray[np.int64]
    """(samples, counts): the metric of any set of samples is `Task.value` of the sum over their rows."""


class NothingToScore(StepError):
    """None of the truths holds anything to be found, so that no answer is right or wrong."""


class Task(Protocol):
    """Preprocess, decode and score. Image sizes are (height, width) in pixels.

    An answer of `decode` may stand for a truth: where there is no ground truth, the float model's answers judge.
    """

    @property
    def metric(self) -> str:
        """The metric's name."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a greater value is a better one."""

    def preprocess(self, image: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.float32] | NDArray[np.uint8]:
        """An image (height, width, 3 RGB) as the model's input."""

    def decode(self, outputs: Mapping[str, NDArray[Any]], image_size: tuple[int, int]) -> Prediction:
        """The model's outputs for one image as an answer in that image's pixels."""

    def check_truth(self, truth: Prediction, name: str) -> None:
        """StepError naming the sample `name` where `truth` cannot judge an answer to it."""

    def score(self, predictions: Sequence[Prediction], truths: Sequence[Prediction]) -> Score:
        """The metric of the answers against the ground truth, sample by sample."""

    def value(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The metric of summed counts (…, counts) → (…)."""
