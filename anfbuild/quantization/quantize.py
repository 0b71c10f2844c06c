"""Statistics, a scheme and an estimator make a QDQ model."""

from __future__ import annotations

import onnx

from anfbuild.errors import StepError
from anfbuild.quantization import schemes
from anfbuild.quantization.as_is import keep, refuse_quantized
from anfbuild.quantization.encodings import Encoding, Encodings, fixed_range, from_range
from anfbuild.quantization.parameters import data_encoding
from anfbuild.quantization.qdq import write
from anfbuild.quantization.ranges import estimate
from anfbuild.quantization.saturation import useful_range
from anfbuild.quantization.schemes import Scheme
from anfbuild.quantization.statistics import Statistics
from anfbuild.quantization.topology import Topology, analyse


def quantize(
    model: onnx.ModelProto, statistics: Statistics, scheme: str, estimator: str, percentile: float = 99.99
) -> tuple[onnx.ModelProto, Encodings]:
    """The QDQ model of the float `model`, and its encodings.

    `model` has static shapes, constants as initializers and opset 17 or newer, and is the one that `statistics` were
    collected on; its inputs and outputs stay float. Raises RecipeError for an unknown scheme or estimator and
    StepError when the statistics are another model's, or the model is quantized already; with the scheme `as_is`, which
    takes such a model as it is and needs no statistics, when it is not.
    """
    if scheme == schemes.AS_IS:
        return model, keep(model)
    refuse_quantized(model)
    found = schemes.find(scheme)
    ranges = estimate(statistics, estimator, bits=found.activation_bits, percentile=percentile)
    topology = analyse(model)
    encodings = {root: _root_encoding(root, topology, ranges, found) for root in set(topology.roots.values())}
    encodings |= {name: encodings[root] for name, root in topology.roots.items()}
    return write(model, topology, encodings, found)


def _root_encoding(root: str, topology: Topology, ranges: dict[str, tuple[float, float]], scheme: Scheme) -> Encoding:
    if root in topology.constants:
        return data_encoding(topology.constants[root], scheme)
    fixed = topology.fixed_range(root)
    if fixed is not None:
        return fixed_range(*fixed, scheme.activation_bits)
    if root not in ranges:
        raise StepError(
            f"the statistics have no tensor {root!r}: they were collected on another model",
            remedy="Run the calibrate step on this model.",
        )
    lo, hi = ranges[root]
    least, greatest = useful_range(root, topology, scheme.activation_bits)
    return from_range(max(lo, least), min(hi, greatest), scheme.activation_bits)
