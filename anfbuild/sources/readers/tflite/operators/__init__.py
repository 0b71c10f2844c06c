"""The operators that can be read, one file a family. A converter is a function `(builder, operator) -> None`.

An operator that asks for the order of dimensions says so; all others take their inputs as they are held, and hold
their output in the same order, so that no turn is written between them.
"""

from anfbuild.sources.readers.tflite.operators import (
    activations,
    convolutions,
    elementwise,
    encodings,
    images,
    parts,
    products,
    reductions,
    shapes,
)
from anfbuild.sources.readers.tflite.operators.common import Converters

CONVERTERS: Converters = {
    **activations.CONVERTERS,
    **convolutions.CONVERTERS,
    **elementwise.CONVERTERS,
    **encodings.CONVERTERS,
    **images.CONVERTERS,
    **parts.CONVERTERS,
    **products.CONVERTERS,
    **reductions.CONVERTERS,
    **shapes.CONVERTERS,
}
"""Kind of operator -> its converter."""
