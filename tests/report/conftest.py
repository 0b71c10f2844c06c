"""Parts of a results document: a whole build, and one on a host that has no compiler."""

from __future__ import annotations

from typing import Any

import pytest

NO_COMPILER = {"available": False, "reason": "onnxruntime-qnn has no wheel for macOS."}


@pytest.fixture
def parts() -> dict[str, Any]:
    """What `results` takes, every figure known."""
    return {
        "recipe": "ocr_detect",
        "target": {"soc": "sm8650", "name": "Snapdragon 8 Gen 3", "soc_model": 57, "arch": "v75", "vtcm_mb": 8},
        "backend": "htp",
        "performance_mode": "burst",
        "quantization": "int8_per_channel",
        "placement": {
            "nodes": 90,
            "htp": 88,
            "gpu": 0,
            "cpu": 2,
            "partitions": 2,
            "share": {
                "macs": {"htp": 0.998, "gpu": 0.0, "cpu": 0.002},
                "time": {"htp": 0.9, "gpu": 0.0, "cpu": 0.1},
            },
            "unlisted": ["Nms_1", "Erf_2"],
            "time_source": "predicted",
        },
        "accuracy": {
            "metric": "hmean",
            "reference": "ground_truth",
            "higher_is_better": True,
            "samples": {"float": 16, "quantized": 16, "emulated": 1},
            "float": 0.877,
            "quantized": 0.85,
            "emulated": 0.9,
            "drop_abs": 0.027,
            "drop_rel": 0.031,
            "interval95": (-0.01, 0.06),
        },
        "agreement": {"between": "emulator and CPU QDQ", "tensor": "heat", "sqnr_db": 38.2, "rms_lsb": 2, "max_lsb": 7},
        "traffic": {"dram_read_mb": 26.4, "dram_write_mb": 3.1, "spill_mb": 1.0, "fill_mb": 1.0},
        "traffic_model": {
            "fused_mb": 30.0,
            "unfused_mb": 90.0,
            "spill_mb": 1.0,
            "saving": 2 / 3,
            "blocks": [
                {
                    "nodes": 2,
                    "first": "conv",
                    "last": "relu",
                    "inputs_mb": 1.0,
                    "outputs_mb": 2.0,
                    "weights_mb": 0.5,
                    "fused_mb": 30.0,
                    "unfused_mb": 90.0,
                    "vtcm_mb": 7.0,
                    "spill_mb": 1.0,
                }
            ],
            "calibrated": True,
        },
        "memory_mb": {
            "weights": 9.0,
            "spill": 1.0,
            "io": 3.0,
            "peak": 60.0,
            "suspects": ["skip: 2.00 MB held from node <a> to node b, over 9 nodes"],
            "calibrated": True,
        },
        "latency_ms": {
            "total": 12.3,
            "htp": 10.0,
            "gpu": 0.0,
            "cpu": 1.0,
            "transfer": 1.3,
            "preprocess": 0.0,
            "interval90": [9.0, 16.5],
            "calibrated": False,
        },
        "package": {"bytes": 9_400_000, "sha256": "a" * 64},
        "calibration": {"samples": 32, "estimator": "mse", "dataset": "synthetic_text", "synthetic": True},
        "versions": [{"part": "qnn", "required": ">=2.51,<2.52", "found": "2.51.0", "verified": True}],
        "gates": {"latency_ms": {"max": 25}, "partitions": {"max": 1}, "accuracy_drop": {"max": 0.03}},
    }


@pytest.fixture
def bare_parts(parts: dict[str, Any]) -> dict[str, Any]:
    """The same build on a host without a compiler."""
    accuracy = {**parts["accuracy"], "emulated": None, "samples": {"float": 16, "quantized": 16}}
    return {
        **parts,
        "placement": NO_COMPILER,
        "agreement": NO_COMPILER,
        "traffic": NO_COMPILER,
        "accuracy": {**accuracy, "reason": NO_COMPILER["reason"]},
        "memory_mb": {**parts["memory_mb"], "peak": None, "reason": "there was no compile to count"},
        "latency_ms": {"reason": "there is no placement to cost"},
        "versions": [{"part": "qnn", "required": ">=2.51", "found": None, "verified": None, **NO_COMPILER}],
        "gates": {**parts["gates"], "agreement_lsb": {"max": 16}},
    }
