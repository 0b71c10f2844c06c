"""What tasks ask of a model's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anfbuild.errors import StepError


def only_output(outputs: Mapping[str, NDArray[Any]], task: str, holds: str) -> tuple[str, NDArray[Any]]:
    """Name and values of the one output, which `holds` what `task` reads.

    Raises StepError where there are several, and where a value is no number.
    """
    if len(outputs) != 1:
        raise StepError(
            f"{task} reads one {holds}, but the model has {len(outputs)} outputs",
            choices=outputs,
            remedy=f"Name the {holds} alone under model.outputs.",
        )
    ((name, values),) = outputs.items()
    if not np.isfinite(values).all():
        raise StepError(f"output {name!r} holds values that are not finite")
    return name, values
