"""A project with one recipe, and a build that only notes what it was asked."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from anfbuild.engine.run import Event
from anfbuild.errors import AnfbuildError, GateError, StepError

RATES = "rates: {conv_tmac_s: 27.5, weight_gb_s: 55.5, fixed_ms: 0.05, fitted: [w8a8]}\n"
GROUPS = {
    "source/made": "kind: file\npath: model.onnx\n",
    "dataset/made": "kind: folder\n",
    "task/made": "kind: made_task\n",
    "quantization/int8_per_channel": "scheme: int8_per_channel\n",
    "quantization/made": "scheme: a16w8\n",
    "calibration/mse": "estimator: mse\n",
    "target/sm8650": "soc: sm8650\nname: One\nsoc_model: 57\narch: v75\nvtcm_mb: 8\n" + RATES,
    "backend/htp": "kind: htp\n",
    "performance/sustained_high_performance": "mode: sustained_high_performance\n",
    "versions/host": 'onnxruntime: ">=1"\n',
    "gates/default": "accuracy_drop: {max: 0.03}\n",
}
PLAIN = """\
defaults: [{override /source: made}, {override /dataset: made}, {override /task: made}, _self_]
model: {inputs: {x: {shape: [1, 3, 32, 32]}}}
"""


@dataclasses.dataclass
class Outcome:
    exit_code: int = 0
    key: str | None = "0123456789abcdef"
    folder: Path | None = None
    results: dict[str, Any] | None = None
    error: AnfbuildError | None = None
    summary: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)
    steps: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    planned: list[str] = dataclasses.field(default_factory=list)
    failed: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {"exit_code": self.exit_code, "key": self.key, "results": self.results}


@dataclasses.dataclass
class Build:
    """Notes its calls. Samples of 100 and more are special, see below."""

    calls: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    mended: bool = False
    """Nothing is special any more but the gate."""

    def __call__(self, recipe: Any, project: Path, *, latest: bool, folder: Path | None, notify: Any) -> Outcome:
        samples = recipe.config["dataset"]["samples"]
        self.calls.append({"recipe": recipe, "project": project, "latest": latest, "folder": folder})
        notify(Event("start", "building", recipe.name))
        print("noise of a library")
        match samples if samples == 103 or not self.mended else 0:
            case 100:
                raise KeyboardInterrupt
            case 101:
                raise ZeroDivisionError("by zero")
            case 102:
                raise StepError("the step broke", where="node Conv_3")
            case 104:
                error = StepError("the \x1b voice\ud800 broke & <fell>", where="node Conv_3")
                ended = [{"step": "words", "key": "k", "hit": True, "seconds": None, "observations": {}}]
                return Outcome(1, error=error, steps=ended, planned=["words", "count", "shout"], failed="count")
            case 103:
                return Outcome(3, error=GateError("accuracy_drop is 0.2", remedy="Try a16w8."))
        results = {"accuracy": {"metric": "f1", "float": 0.9, "quantized": 0.89}, "latency_ms": {"total": samples / 2}}
        return Outcome(results=results, summary=[("accuracy", "0.89", "[f1]"), ("latency", "4 ms", "predicted")])


@pytest.fixture
def build() -> Build:
    return Build()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with `recipes/plain.yaml` and what that needs."""
    files = {f"conf/{name}": text for name, text in GROUPS.items()}
    for name, text in {**files, "recipes/plain": PLAIN}.items():
        path = tmp_path / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path
