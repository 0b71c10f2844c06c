"""What every task offers. Light: importing it imports no numpy."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypedDict

from anfbuild.errors import StepError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Content: TypeAlias = "NDArray[np.uint8] | str"
"""What a sample is: an image (height, width, 3) RGB, or a text."""

Prediction = dict[str, Any]
"""An answer, or the ground truth of a sample: JSON values under the task's own names."""


class InputSpec(TypedDict, total=False):
    """How a model's input is laid out. For images: value = (pixel * scale - mean) / std, mean and std in channel order;
    for texts only `shape` and `dtype` have a meaning."""

    shape: Sequence[int]
    """Fixed dimensions, the batch is 1: four in the order of `layout` for an image, [1, tokens] for a text."""
    dtype: str
    """`float32` (default) or `uint8` for an image, `int64` or `int32` for a text."""
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
    """What a model is fed, what its outputs say, how good its answers are.

    An answer of `decode` may stand for a truth: where there is no ground truth, the float model's answers judge.
    """

    @property
    def metric(self) -> str:
        """The metric's name."""

    @property
    def higher_is_better(self) -> bool:
        """Whether a greater value is a better one."""

    def feeds(self, content: Content, specs: Mapping[str, InputSpec]) -> dict[str, NDArray[Any]]:
        """One sample as the model's inputs, by name. Raises StepError for another kind of sample."""

    def size(self, content: Content) -> tuple[int, int]:
        """What `decode` has to know of a sample: (height, width) of an image in pixels, (1, tokens) of a text."""

    def decode(self, outputs: Mapping[str, NDArray[Any]], size: tuple[int, int]) -> Prediction:
        """The model's outputs for one sample of `size` as an answer."""

    def check_truth(self, truth: Prediction, name: str) -> None:
        """StepError naming the sample `name` where `truth` cannot judge an answer to it."""

    def score(self, predictions: Sequence[Prediction], truths: Sequence[Prediction]) -> Score:
        """The metric of the answers against the ground truth, sample by sample."""

    def value(self, totals: NDArray[np.int64]) -> NDArray[np.float64]:
        """The metric of summed counts (…, counts) → (…)."""
