"""A small project of a user: a choice or two in every group, and recipes to go with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

RATES = "rates: {conv_tmac_s: 27.5, weight_gb_s: 55.5, fixed_ms: 0.05, fitted: [w8a8]}\n"
GROUPS = {
    "source/made": "kind: file\npath: model.onnx\n",
    "source/unset": "kind: file\npath: ???\n",
    "dataset/made": "kind: folder\nseed: 7\nsamples: 8\nsize: 64\n",
    "task/made": "kind: made_task\nthreshold: 0.5\n",
    "quantization/int8_per_channel": "scheme: int8_per_channel\n",
    "quantization/made": "scheme: a16w8\n",
    "calibration/mse": "estimator: mse\n",
    "target/sm8650": "soc: sm8650\nname: One\nsoc_model: 57\narch: v75\nvtcm_mb: 8\n" + RATES,
    "target/made": "# a chip\nsoc: made\nname: Two\nsoc_model: 1\narch: v99\nvtcm_mb: 4\n" + RATES,
    "backend/htp": "kind: htp\n",
    "performance/sustained_high_performance": "mode: sustained_high_performance\n",
    "versions/host": 'onnxruntime: ">=1"\n',
    "gates/default": "accuracy_drop: {max: 0.03}\n",
}
PLAIN = """\
defaults:
  - override /source: made
  - override /dataset: made
  - override /task: made
  - _self_
model:
  inputs:
    x: {shape: [1, 3, 32, 32]}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the groups above and `recipes/plain.yaml`."""
    for name, text in GROUPS.items():
        path = tmp_path / "conf" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "plain.yaml").write_text(PLAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write_recipe(project: Path) -> Callable[..., None]:
    """Write `recipes/NAME.yaml`: the plain recipe with `more` below it, or `text` alone."""

    def write(more: str = "", name: str = "mine", text: str | None = None) -> None:
        path = project / "recipes" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PLAIN + more if text is None else text)

    return write
