"""The outputs of a quantized model, sample by sample, as steps hand them on: in the integers that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    from anfbuild.quantization.encodings import Encodings


def write_outputs(folder: Path, index: int, outputs: Mapping[str, np.ndarray], encodings: Encodings) -> None:
    """Write sample `index`. A quantized model's float output is a multiple of a scale: the integers lose nothing."""
    from anfbuild.qnn.arrays import write_arrays

    known = encodings.activations
    codes = {name: known[name].quantize(value) if name in known else value for name, value in outputs.items()}
    folder.mkdir(exist_ok=True)
    write_arrays(folder / f"{index:06d}.npz", codes)


def read_outputs(folder: Path, encodings: Encodings) -> Iterator[dict[str, np.ndarray]]:
    """The outputs that `write_outputs` wrote, in the order of the samples, as floats again; none without a folder."""
    from anfbuild.qnn.arrays import read_arrays

    known = encodings.activations
    for path in sorted(folder.glob("*.npz")):
        codes = read_arrays(path)
        yield {name: known[name].dequantize(value) if name in known else value for name, value in codes.items()}
