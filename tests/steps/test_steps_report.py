"""The report of builds whose figures cannot all be had."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from anfbuild.engine.step import Job
from anfbuild.steps import GRAPH

NO_SCORE = {"reason": "there is nothing to score"}
PARTS: dict[str, dict[str, Any]] = {
    "calibrate": {"samples": 4},
    "place": {
        "available": True,
        "nodes": 2,
        "htp": 2,
        "gpu": 0,
        "cpu": 0,
        "partitions": 1,
        "share": {"macs": {"htp": None, "gpu": None, "cpu": None}, "time": {"htp": 1.0, "gpu": 0.0, "cpu": 0.0}},
        "unlisted": [],
        "time_source": "predicted",
        "reasons": {"/share/macs": "the model has no multiplication"},
    },
    "prepare": {
        "available": True,
        "traffic_mb": None,
        "traffic_reason": "the compiler says nothing of it",
    },
    "emulate": {"available": True, "agreement": {"reason": "there is nothing to compare"}},
    "evaluate": {**NO_SCORE, "reasons": {}},
    "simulate": {
        **{name: {"reason": "there is nothing to cost"} for name in ("latency_ms", "traffic_model", "memory_mb")},
        "reasons": {},
        "notes": [],
    },
}


def test_a_model_without_a_multiplication_has_no_share_of_it(tmp_path: Path) -> None:
    for name, part in PARTS.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.json").write_text(json.dumps(part))
    for name in ("package", "output", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "package" / "package.anf").write_bytes(b"packed")
    step = GRAPH["report"]
    config = step.config(
        name="toy",
        soc="sm8650",
        chip="Snapdragon 8 Gen 3",
        soc_model=57,
        arch="v75",
        vtcm_mb=8,
        backend="htp",
        mode="burst",
        scheme="int8_per_channel",
        estimator="mse",
        dataset="folder",
        versions=[],
        gates={"htp_macs": {"min": 1.0}, "cpu_nodes": {"max": 0}},
    )
    inputs = {name: tmp_path / name for name in (*PARTS, "package")}
    step.run(
        Job(
            config=config,
            inputs=inputs,
            output=tmp_path / "output",
            scratch=tmp_path / "scratch",
            observe=lambda *_: None,
        )
    )
    results = json.loads((tmp_path / "output" / "results.json").read_text())
    nodes, macs = results["gates"]
    assert nodes["passed"] is True
    assert macs["passed"] is None
    assert macs["reason"] == "the model has no multiplication"
    assert (tmp_path / "output" / "report.html").exists()
