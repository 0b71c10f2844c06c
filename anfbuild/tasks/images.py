"""What tasks on images share: each input of the model is one image, made as its spec says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import StepError
from anfbuild.tasks.preprocess import preprocess
from anfbuild.tasks.task import Content, InputSpec


class ImageTask:
    """The half of a task that feeds a model with images."""

    def preprocess(self, image: NDArray[np.uint8], spec: InputSpec) -> NDArray[np.float32] | NDArray[np.uint8]:
        """`anfbuild.tasks.preprocess.preprocess`: the image is stretched to the input's size."""
        return preprocess(image, spec)

    def feeds(self, content: Content, specs: Mapping[str, InputSpec]) -> dict[str, NDArray[Any]]:
        """The image as every input of the model, by name."""
        image = _image(content)
        return {name: self.preprocess(image, spec) for name, spec in specs.items()}

    def size(self, content: Content) -> tuple[int, int]:
        """(height, width) in pixels."""
        height, width = _image(content).shape[:2]
        return height, width


def _image(content: Content) -> NDArray[np.uint8]:
    if isinstance(content, str):
        raise StepError("the task wants images, but the sample is a text", remedy="Choose another data set or task.")
    return content
