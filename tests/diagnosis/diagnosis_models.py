"""Small builds by hand: one network at every stage, healthy, so that a test can hurt one of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import onnx
from quantization_models import model, node

from anfbuild.diagnosis.diagnose import Diagnosis, Emulation, Models, Target, diagnose
from anfbuild.graph import Session, clean
from anfbuild.qnn import Options
from anfbuild.quantization.encodings import Encodings
from anfbuild.quantization.quantize import quantize
from anfbuild.quantization.statistics import Statistics, collect
from anfbuild.steps.aim import aim_for

SM8650 = Options(57, "v75", 8)
NO_CHIP = "this test has no chip"
SHAPE = (1, 3, 16, 16)


def weights(*shape: int, seed: int = 0, scale: float = 0.4) -> np.ndarray:
    return (np.random.default_rng((seed, *shape)).standard_normal(shape) * scale).astype(np.float32)


def upsampling(nearest_mode: str = "floor", coordinates: str = "asymmetric", mode: str = "nearest") -> onnx.ModelProto:
    """Conv, BatchNormalization, Relu, Resize, Conv: an image of 32x32 out of one of 16x16."""
    nodes = [
        node("Conv", ["x", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c1", "gain", "shift", "mean", "variance"], ["n1"]),
        node("Relu", ["n1"], ["r1"]),
        node(
            *("Resize", ["r1", "", "scales"], ["u1"]),
            mode=mode,
            coordinate_transformation_mode=coordinates,
            nearest_mode=nearest_mode,
        ),
        node("Conv", ["u1", "w2"], ["c2"], pads=[1, 1, 1, 1]),
        node("Relu", ["c2"], ["y"]),
    ]
    constants = {
        **{"w1": weights(8, 3, 3, 3), "w2": weights(4, 8, 3, 3), "scales": np.array([1, 1, 2, 2], np.float32)},
        **{
            "gain": 1 + weights(8) / 4,
            "shift": weights(8),
            "mean": weights(8, seed=1),
            "variance": 1 + weights(8) ** 2,
        },
    }
    return model(nodes, {"x": list(SHAPE)}, ["y"], constants)


def transposed() -> onnx.ModelProto:
    """Conv, Relu, ConvTranspose with an Add of a constant per channel behind it, Relu, Conv."""
    nodes = [
        node("Conv", ["x", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("ConvTranspose", ["r1", "w2"], ["t2"], strides=[2, 2]),
        node("Add", ["t2", "bias"], ["a2"]),
        node("Relu", ["a2"], ["r2"]),
        node("Conv", ["r2", "w3"], ["y"]),
    ]
    constants = {
        **{"w1": weights(8, 3, 3, 3), "w2": weights(8, 8, 2, 2), "w3": weights(4, 8, 1, 1)},
        "bias": weights(8, 1, 1, scale=8.0),
    }
    return model(nodes, {"x": list(SHAPE)}, ["y"], constants)


def repeating() -> onnx.ModelProto:
    """Conv, Relu, and a Gather that takes each row twice."""
    nodes = [
        node("Conv", ["x", "w1"], ["c1"], pads=[1, 1, 1, 1]),
        node("Relu", ["c1"], ["r1"]),
        node("Gather", ["r1", "rows"], ["y"], axis=2),
    ]
    constants = {"w1": weights(8, 3, 3, 3), "rows": np.repeat(np.arange(16), 2)}
    return model(nodes, {"x": list(SHAPE)}, ["y"], constants)


def samples(count: int = 2) -> list[dict[str, np.ndarray]]:
    return [{"x": weights(*SHAPE, seed=seed, scale=1.0)} for seed in range(count)]


@dataclasses.dataclass
class Build:
    """A build whose stages a test may replace."""

    source: onnx.ModelProto
    converted: onnx.ModelProto
    provenance: dict[str, list[str]]
    scheme: str = "int8"
    encodings: Callable[[Encodings], Encodings] = lambda found: found

    @classmethod
    def of(cls, source: onnx.ModelProto, scheme: str = "int8") -> Build:
        copy = onnx.ModelProto.FromString(source.SerializeToString())
        cleaned = clean(copy, {})
        return cls(source, cleaned.model, cleaned.provenance, scheme)

    def statistics(self) -> Statistics:
        return collect(self.converted, [(str(index), feeds) for index, feeds in enumerate(samples(4))])

    def models(self, qdq: tuple[onnx.ModelProto, Encodings] | None = None) -> Models:
        made, encodings = qdq or quantize(self.converted, self.statistics(), self.scheme, "minmax")
        return Models(self.source, self.converted, self.converted, made, encodings, self.provenance, [])

    def diagnose(
        self,
        qdq: tuple[onnx.ModelProto, Encodings] | None = None,
        chip: Callable[[onnx.ModelProto, list[dict[str, np.ndarray]]], Emulation] | None = None,
        agreement_lsb: float = 16.0,
    ) -> Diagnosis:
        models, feeds = self.models(qdq), samples()
        session = Session(models.qdq)
        emulation = Emulation((), NO_CHIP) if chip is None else chip(models.qdq, feeds)
        target = Target(SM8650, aim_for(57, self.scheme, models.qdq), {"x": list(SHAPE)}, agreement_lsb)
        return diagnose(models, feeds, [session.run(feed) for feed in feeds], emulation, target)


def edited(source: onnx.ModelProto, edit: Callable[[onnx.GraphProto], None]) -> onnx.ModelProto:
    """A copy of a model, changed."""
    copy = onnx.ModelProto.FromString(source.SerializeToString())
    edit(copy.graph)
    return copy
