"""simulate: what the package will cost on the chip. A change of the performance mode reruns this and nothing before."""

from __future__ import annotations

import dataclasses
from typing import Any

from anfbuild.engine.step import Job, at, step
from anfbuild.steps.files import read_json, write_json

_QDQ = ("QuantizeLinear", "DequantizeLinear")
"""At the ends of the graph they run on the CPU as a rule: what the model is fitted to has them too."""


@dataclasses.dataclass(frozen=True)
class Simulate:
    """The chip's rates and the performance mode."""

    soc: str = at("target.soc")
    vtcm_mb: int = at("target.vtcm_mb")
    rates: dict[str, Any] = at("target.rates")
    mode: str = at("performance.mode")


@step(needs=("quantize", "prepare"), config=Simulate)
def simulate(job: Job[Simulate]) -> None:
    """Predict latency, DRAM traffic and memory on the target."""
    from anfbuild import simulator
    from anfbuild.graph import load
    from anfbuild.qnn.features import Features

    config = job.config
    prepared = read_json(job.inputs["prepare"] / "prepare.json")
    features = prepared.get("features")
    prediction = simulator.predict(
        load(job.inputs["quantize"] / "model.onnx"),
        {"soc": config.soc, "vtcm_mb": config.vtcm_mb, "rates": config.rates},
        config.mode,
        prepared.get("traffic_mb"),
        None if features is None else Features.from_json(features),
        sum(verdict["unit"] == "CPU" and verdict["op_type"] not in _QDQ for verdict in prepared.get("verdicts", ())),
    )
    write_json(job.output / "simulate.json", prediction.to_json())
