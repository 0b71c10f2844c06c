"""Programs of PyTorch, with PyTorch (--full) and without."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from extras import needed

from anfbuild import graph
from anfbuild.errors import StepError
from anfbuild.sources.readers import read


def test_without_pytorch_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    path = tmp_path / "m.pt2"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(StepError, match="needs PyTorch to be read; not installed: torch, onnxscript") as caught:
        read(path)
    assert caught.value.where == str(path)
    assert "pip install 'anfbuild[torch]'" in (caught.value.remedy or "")


@pytest.mark.full
@pytest.mark.parametrize("open_batch", [False, True])
def test_a_program_computes_what_pytorch_does(tmp_path: Path, open_batch: bool) -> None:
    torch = needed("torch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1),
        torch.nn.BatchNorm2d(8),
        torch.nn.SiLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 5),
    ).eval()
    value = torch.randn(2, 3, 16, 16)
    dynamic = {"input": {0: torch.export.Dim("batch", min=1, max=64)}} if open_batch else None
    path = tmp_path / "m.pt2"
    torch.export.save(torch.export.export(net, (value,), dynamic_shapes=dynamic), path)
    model = read(path)
    (name,) = (entry.name for entry in graph.input_values(model))
    clean, _, _ = graph.clean(model, {name: [2, 3, 16, 16]})
    (found,) = graph.Session(clean).run({name: value.numpy()}).values()
    with torch.no_grad():
        np.testing.assert_allclose(found, net(value).numpy(), atol=1e-5)


@pytest.mark.full
def test_a_damaged_program_is_refused_by_name(tmp_path: Path) -> None:
    needed("torch")
    path = tmp_path / "m.pt2"
    path.write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(StepError, match="PyTorch cannot load the program") as caught:
        read(path)
    assert caught.value.where == str(path)
